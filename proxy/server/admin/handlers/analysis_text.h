// Formats the numbers of an analysis, and prepares its input for a replay.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "pool/directory/what_if.h"
#include "proxy/server/admin/handlers/pool_analysis.h"
#include "proxy/server/admin/json.h"
#include "proxy/server/admin/view.h"

namespace carpool::proxy::admin {

inline std::string rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.2f" : "%.0f", value);
  return text;
}
inline std::string time(Duration duration) {
  const double s = seconds(duration);
  if (s == 0) return "0 s";
  if (s < 0.001) return rounded(s * 1e6) + " us";
  return s < 1 ? rounded(s * 1e3) + " ms" : rounded(s) + " s";
}

inline std::string counted(std::uint64_t count, std::string_view what) {
  return std::to_string(count).append(" ").append(what).append(count == 1 ? "" : "s");
}

inline pool::Workload workload_of(const PoolInfo& pool, const PoolAnalysis& study) {
  const pool::Destination::Snapshot& s = pool.snapshot;
  return {study.past, s.dial_time, s.learned_idle, std::max(1U, s.streams), false, s.peak};
}

}  // namespace carpool::proxy::admin
