#include "metrics/prometheus.h"

#include "metrics/prometheus_model.h"
#include "metrics/prometheus_text.h"

namespace carpool::metrics {

bool Exposition::next(std::string& out) {
  if (!families_.next(part_)) return false;
  const prometheus::MetricFamily made = model_of(part_);
  if (part_.begins) append_heading(out, made);
  append_samples(out, made);
  return true;
}

std::string exposition(const Registry& registry, Sample sample) {
  std::string out;
  for (Exposition all(registry, std::move(sample)); all.next(out);) {
  }
  return out;
}

}  // namespace carpool::metrics
