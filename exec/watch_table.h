// WatchTable: the registrations for readiness on one loop. The kernel stores 64 bits of kind, generation and index,
// never a pointer. A generation ends with its registration, so an event that was already dequeued finds no watcher.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/loop.h"

namespace carpool::exec {

enum class EventKind : std::uint8_t { wake, libuv, local, shared };

struct EventName {
  EventKind kind = EventKind::wake;
  std::uint32_t generation = 0;  // < kGenerations
  std::uint32_t index = 0;

  static constexpr std::uint32_t kGenerations = 1U << 28U;
  static constexpr std::uint32_t kSharedGenerations = 1U << 20U;  // fits the pool's state word

  constexpr std::uint64_t pack() const {
    return static_cast<std::uint64_t>(kind) << 60U | static_cast<std::uint64_t>(generation) << 32U | index;
  }
  static constexpr EventName unpack(std::uint64_t bits) {
    return {static_cast<EventKind>(bits >> 60U), static_cast<std::uint32_t>(bits >> 32U) & (kGenerations - 1),
            static_cast<std::uint32_t>(bits)};
  }
};

class WatchTable {
 public:
  WatchKey add(Watcher& watcher);
  bool remove(WatchKey key);  // false: already removed
  // Returns the watcher of this registration, or null if it has ended.
  Watcher* find(std::uint32_t slot, std::uint32_t generation) const;
  std::uint32_t size() const { return used_; }

 private:
  struct Slot {
    Watcher* watcher = nullptr;
    std::uint32_t generation = 1;  // of the current registration, or of the next one
    std::uint32_t next_free = kNone;
  };
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::vector<Slot> slots_;
  std::uint32_t free_ = kNone;
  std::uint32_t used_ = 0;
};

}  // namespace carpool::exec
