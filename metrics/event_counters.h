// EventCounters: the counters of one kind of event (events.h), one for each value of its enumeration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "metrics/counter.h"

namespace carpool::metrics {

template <class Event>
class EventCounters {
 public:
  EventCounters(unsigned loops, std::size_t values) {
    counters_.reserve(values);
    for (std::size_t i = 0; i < values; ++i) counters_.emplace_back(loops);
  }

  void add(LoopId loop, Event what, std::uint64_t n) { counters_[static_cast<std::size_t>(what)].add(loop, n); }
  std::uint64_t total(Event what) const { return counters_[static_cast<std::size_t>(what)].total(); }

 private:
  std::vector<Counter> counters_;
};

}  // namespace carpool::metrics
