// model_of(): a family of a scrape in prometheus-cpp's data model.
#pragma once

#include <prometheus/metric_family.h>

#include "metrics/families.h"

namespace carpool::metrics {

// Returns the points of this part; the parts of one family differ in points only.
prometheus::MetricFamily model_of(const Family& part);

}  // namespace carpool::metrics
