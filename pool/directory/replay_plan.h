// plan_replay(): plans when each recorded borrow arrives if the pool has another size. A client that sends its next
// request directly after a response sends it earlier if the response is earlier: such a borrow follows its predecessor.
// Every other borrow is independent and arrives at its recorded time.
#pragma once

#include <cstddef>
#include <vector>

#include "base/clock.h"
#include "pool/policy/borrow_history.h"

namespace carpool::pool {

struct ReplayStep {
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  BorrowRecord borrow;
  std::size_t after = kNone;  // the number of the step whose end it follows
  Duration gap{};             // from that end to its arrival
};

// A client with a longer gap does not send its request because of the response.
inline constexpr Duration kPromptClient = std::chrono::milliseconds(3);

// Returns the borrows in order of arrival.
std::vector<ReplayStep> plan_replay(std::vector<BorrowRecord> borrows);

}  // namespace carpool::pool
