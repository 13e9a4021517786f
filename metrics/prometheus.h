// The door to prometheus-cpp, whose data model a scrape is: one scrape as text 0.0.4, part by part. Its counters and
// registry stay outside.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "metrics/families.h"

namespace carpool::metrics {

inline constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

// Some milliseconds for thousands of series: not on a loop that others wait for.
class Exposition {
 public:
  Exposition(const Registry& registry, Sample sample) : families_(registry, std::move(sample)) {}

  // Appends the next part, some 20 KiB at most; a family begins wherever a part ends. False: there are no more.
  bool next(std::string& out);

 private:
  Families families_;
  Family part_;
};

// All of it at once.
std::string exposition(const Registry& registry, Sample sample);

}  // namespace carpool::metrics
