// advise_size(): the smallest pool with which 99 of 100 borrows wait no longer than a stated time. Replays the recorded
// borrows on pools of other sizes (what_if.h), so that bursts, slow origins and clients that send their next request at
// once are included. Takes some ten replays: tens of milliseconds of CPU for thousands of borrows.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "pool/directory/what_if.h"
#include "pool/policy/sizing.h"

namespace carpool::pool {

struct SizeAdvice {
  MeasuredLoad load;
  Duration target{};           // the maximum wait of 99 of 100 borrows
  std::uint32_t size = 0;      // connections
  std::uint32_t min_idle = 0;  // needed where waits for dials exceed the target
  // The sizes that parts of the record, with equal numbers of borrows, require. Equal to `size` if the record is too
  // short to be divided.
  std::uint32_t range_min = 0, range_max = 0;
  bool met = false;           // false: the target is not met by any size; dials or refusals remain
  SimulationResult expected;  // with `size` and `min_idle`
  SimulationResult current;   // with the current settings
};

// `target`: nullopt stands for a tenth of the mean hold time, 1 ms at least. Returns nullopt if there are too few
// borrows.
std::optional<SizeAdvice> advise_size(const Workload& load, const Limits& limits, Duration wait_timeout,
                                      std::optional<Duration> target);

}  // namespace carpool::pool
