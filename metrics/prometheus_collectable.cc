#include "metrics/prometheus_collectable.h"

#include <iterator>
#include <utility>

#include "metrics/families.h"
#include "metrics/prometheus_model.h"

namespace carpool::metrics {

std::vector<prometheus::MetricFamily> PrometheusCollectable::Collect() const {
  std::vector<prometheus::MetricFamily> all;
  Family part;
  for (Families families(registry_, source_.sample()); families.next(part);) {
    prometheus::MetricFamily made = model_of(part);
    if (part.begins) {
      all.push_back(std::move(made));
    } else {
      auto& points = all.back().metric;
      points.insert(points.end(), std::make_move_iterator(made.metric.begin()),
                    std::make_move_iterator(made.metric.end()));
    }
  }
  return all;
}

}  // namespace carpool::metrics
