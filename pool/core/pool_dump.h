// counts_of(), dump_of(): a pool's entries as counts and as text, for diagnosis. The entries are read one after the
// other; the result is not a snapshot of one moment.
#pragma once

#include <cstdint>
#include <string>

#include "pool/core/pool.h"

namespace carpool::pool {

struct Counts {
  std::uint32_t reserved = 0, idle = 0, lent = 0, ending = 0;  // ending: closed but still in use
};

constexpr const char* name_of(EntryWord word) {
  if (word.reserved()) return "reserved";
  if (word.closed()) return "ending";
  if (word.borrowed()) return "lent";
  return word.inspecting() ? "inspected" : "idle";
}

template <class T>
Counts counts_of(const Pool<T>& pool) {
  Counts counts;
  pool.for_each([&](const Entry<T>& entry) {
    const EntryWord word(entry.word.load(std::memory_order_relaxed));
    if (word.reserved()) {
      ++counts.reserved;
    } else if (!word.vacant()) {
      ++(word.closed() ? counts.ending : word.borrowed() ? counts.lent : counts.idle);
    }
  });
  return counts;
}

// Returns "3 of 8 places" and a line for each non-vacant entry: "2: lent, 1 of 1 users, 40 uses, home 0".
template <class T>
std::string dump_of(const Pool<T>& pool) {
  std::string text = std::to_string(pool.in_use()) + " of " + std::to_string(pool.cap()) + " places";
  if (pool.terminated()) text += ", terminated";
  text += '\n';
  pool.for_each([&](const Entry<T>& entry) {
    const EntryWord word(entry.word.load(std::memory_order_relaxed));
    if (word.vacant() && !word.reserved()) return;
    text += std::to_string(entry.place()) + ": " + name_of(word) + ", " + std::to_string(word.users()) + " of " +
            std::to_string(entry.multiplexing().max_users) + " users, " + std::to_string(word.uses()) + " uses, home " +
            std::to_string(word.home()) + '\n';
  });
  return text;
}

}  // namespace carpool::pool
