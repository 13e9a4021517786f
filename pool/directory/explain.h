// explain(): describes a pool's ledger in plain sentences: why its connections were opened and closed, and the
// consequences, with the figures. A pure function of the snapshot.
#pragma once

#include <string>
#include <vector>

#include "pool/destination/snapshot.h"

namespace carpool::pool {

struct ExplainSettings {
  Duration idle_timeout{};  // zero: none
  Duration expire_time{};
  std::uint32_t max_usage = 0;
  bool single_use = false;  // pool.reuse = "never"
  std::uint32_t min_idle = 0;
  bool maximize = false;
};

// Returns one sentence per element, the most important first; never empty.
std::vector<std::string> explain(const Destination::Snapshot& snapshot, const ExplainSettings& explain_settings);

}  // namespace carpool::pool
