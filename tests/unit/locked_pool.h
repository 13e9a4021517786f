// LockedPool: Pool<T>'s contract in its simplest form, a mutex around a vector. The oracle of Pool's tests.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>

#include "pool/destination/environment.h"

namespace carpool::pool {

template <class T>
class LockedPool {
 public:
  enum class State : std::uint8_t { vacant, reserved, enabled, closed };  // closed: until its last user releases it
  struct Slot {
    State state = State::vacant;
    std::uint32_t users = 0;
    LoopId home = 0;
    std::uint32_t most = 1;
    bool shared = false;
    T value{};
  };

  explicit LockedPool(std::uint32_t cap, std::uint32_t multiplex = 1) : cap_(cap), multiplex_(multiplex) {}

  Slot* reserve() {
    const std::scoped_lock lock(mutex_);
    if (terminated_ || in_use_ >= cap_) return nullptr;
    ++in_use_;
    for (Place& slot : slots_) {
      if (!slot.taken) return &claim(slot);
    }
    return &claim(slots_.emplace_back());
  }
  bool enable(Slot& slot, LoopId home, bool acquired) {
    const std::scoped_lock lock(mutex_);
    if (slot.state != State::reserved) return false;
    slot.state = State::enabled;
    slot.home = home;
    slot.users = acquired ? 1 : 0;
    slot.most = multiplex_;
    slot.shared = multiplex_ > 1;
    return true;
  }
  void share(Slot& slot, std::uint32_t most) {
    const std::scoped_lock lock(mutex_);
    slot.most = most;
  }
  // Prefers the own loop's slots; a shareable slot of another loop stays there, any other moves.
  Slot* acquire(LoopId loop) {
    const std::scoped_lock lock(mutex_);
    Slot* best = nullptr;
    for (Place& slot : slots_) {
      if (slot.state != State::enabled || slot.users >= slot.most) continue;
      if (slot.home == loop) {
        best = &slot;
        break;
      }
      if (best == nullptr) best = &slot;
    }
    if (best == nullptr) return nullptr;
    if (!best->shared) best->home = loop;
    ++best->users;
    return best;
  }
  bool release(Slot& slot) {
    const std::scoped_lock lock(mutex_);
    if (slot.state != State::enabled || slot.users == 0) return false;
    --slot.users;
    return true;
  }
  bool close(Slot& slot) {
    const std::scoped_lock lock(mutex_);
    if (slot.state == State::reserved) {
      slot.state = State::vacant;
      return true;
    }
    if (slot.users == 0) return false;
    slot.state = --slot.users == 0 ? State::vacant : State::closed;
    return slot.users == 0;
  }
  void vacate(Slot& slot) {
    const std::scoped_lock lock(mutex_);
    static_cast<Place&>(slot).taken = false;
    --in_use_;
  }
  template <class End>
  void terminate(End&& end) {
    {
      const std::scoped_lock lock(mutex_);
      if (terminated_) return;
      terminated_ = true;
    }
    for (Slot& slot : slots_) {
      if (slot.state == State::vacant || slot.state == State::closed) continue;
      const bool free = slot.state == State::enabled && slot.users == 0;
      slot.state = slot.users != 0 ? State::closed : State::vacant;
      if (free) end(slot);
    }
  }
  std::uint32_t in_use() const {
    const std::scoped_lock lock(mutex_);
    return in_use_;
  }
  bool has_idle() const {
    const std::scoped_lock lock(mutex_);
    for (const Slot& slot : slots_) {
      if (slot.state == State::enabled && slot.users == 0) return true;
    }
    return false;
  }

 private:
  struct Place : Slot {
    bool taken = false;
  };
  Slot& claim(Place& slot) {
    slot.taken = true;
    slot.state = State::reserved;
    slot.users = 0;
    return slot;
  }
  mutable std::mutex mutex_;
  const std::uint32_t cap_, multiplex_;
  std::uint32_t in_use_ = 0;
  bool terminated_ = false;
  std::deque<Place> slots_;
};

}  // namespace carpool::pool
