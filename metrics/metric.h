// Metric: the name, type, labels and help of a metric.
#pragma once

#include <cstdint>
#include <string_view>

namespace carpool::metrics {

// distribution: a histogram of what exists at the moment of the scrape, so its counts also fall.
enum class Type : std::uint8_t { counter, gauge, histogram, distribution };

struct Metric {
  std::string_view name;
  Type type;
  std::string_view labels;  // names, separated by commas
  std::string_view help;
};

}  // namespace carpool::metrics
