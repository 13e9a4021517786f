// Replacement: the progress of reconnect(). It replaces every connection that exists then: an idle one is closed once
// its successor is open, or before it is dialed if there is no slot for both; a borrowed one is closed on release.
#pragma once

#include <algorithm>
#include <cstdint>

namespace carpool::pool {

struct Replacement {
  std::uint32_t marked = 0;         // connections to be replaced
  std::uint32_t to_dial = 0;        // successors not dialed yet
  std::uint32_t closed_before = 0;  // connections closed before their successor was open
  std::uint32_t to_close = 0;       // successors that are open while their predecessor is not closed
  std::uint32_t block = 0;          // where the search for an idle marked connection continues
  std::uint32_t searched = 0;       // blocks without one since the last that was found

  bool in_progress() const { return marked != 0 || to_dial != 0; }
  // Starts another reconnect(). Marked connections stay marked.
  void restart() { to_dial = closed_before = to_close = searched = 0; }
  // Plans the successors that `idle` marked connections lack, while `redials` successors are being dialed.
  void plan(std::uint32_t idle, std::uint32_t redials) {
    const std::uint32_t needed = idle + closed_before, begun = redials + to_close;
    if (needed > begun) to_dial = std::max(to_dial, needed - begun);
  }
  // Called when no marked connection is idle any more: successors are dialed only for those that were closed.
  void dial_closed_only() { to_dial = std::min(to_dial, closed_before); }
};

}  // namespace carpool::pool
