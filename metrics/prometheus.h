// Exposition: one scrape as text 0.0.4, part by part, in prometheus-cpp's data model. The files metrics/prometheus* are
// the only ones that use prometheus-cpp; its counters and registry are not used.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "metrics/families.h"

namespace carpool::metrics {

inline constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

// Takes some milliseconds for thousands of series: do not run it on a loop that serves requests.
class Exposition {
 public:
  Exposition(const Registry& registry, Sample sample) : families_(registry, std::move(sample)) {}

  // Appends the next part, at most some 20 KiB; a part may end within a family. Returns false at the end.
  bool next(std::string& out);

 private:
  Families families_;
  Family part_;
};

// Returns the whole text at once.
std::string exposition(const Registry& registry, Sample sample);

}  // namespace carpool::metrics
