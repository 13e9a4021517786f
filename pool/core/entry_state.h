// EntryWord: the state of an entry in one 64-bit word, and the only functions that change it.
//
//   marks 3 | home loop 8 | generation 20 | uses 20 | users 12
//
// users       current borrowers (at most 1 for HTTP/1.1)
// uses        borrows of the current object so far; saturates
// generation  changes when the entry moves to another loop and when it closes, so that an event in flight, which
//             names the old generation, is dropped. Never 0
// marks       reserved (a dial is in progress), closed, inspecting (the home loop examines
//             the socket)
//
// Multiplex count and use count change in the same CAS. Every operation is a CAS loop; nothing else writes the word.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/loop_id.h"
#include "pool/atomic.h"

namespace carpool::pool {

class EntryWord {
 public:
  static constexpr std::uint32_t kMaxUsers = (1u << 12) - 1;
  static constexpr std::uint32_t kMaxUses = (1u << 20) - 1;
  static constexpr std::uint32_t kMaxGeneration = (1u << 20) - 1;
  enum Mark : std::uint64_t {
    kReserved = std::uint64_t{1} << 60,
    kClosed = std::uint64_t{1} << 61,
    kInspecting = std::uint64_t{1} << 62,
    kMarks = std::uint64_t{7} << 60,
  };

  constexpr EntryWord() = default;
  constexpr explicit EntryWord(std::uint64_t bits) : bits_(bits) {}
  // The initial word of an entry.
  static constexpr EntryWord vacant(std::uint32_t generation) { return EntryWord(kClosed).generation(generation); }

  constexpr std::uint64_t bits() const { return bits_; }
  constexpr std::uint32_t users() const { return static_cast<std::uint32_t>(bits_ & kMaxUsers); }
  constexpr std::uint32_t uses() const { return static_cast<std::uint32_t>(bits_ >> 12) & kMaxUses; }
  constexpr std::uint32_t generation() const { return static_cast<std::uint32_t>(bits_ >> 32) & kMaxGeneration; }
  constexpr LoopId home() const { return static_cast<LoopId>(bits_ >> 52); }
  constexpr bool reserved() const { return (bits_ & kReserved) != 0; }
  constexpr bool closed() const { return (bits_ & kClosed) != 0; }
  constexpr bool inspecting() const { return (bits_ & kInspecting) != 0; }

  constexpr bool vacant() const { return closed() && users() == 0 && !inspecting(); }
  constexpr bool idle() const { return (bits_ & (kMarks | kMaxUsers)) == 0; }
  constexpr bool borrowed() const { return users() != 0; }
  // Returns true if another borrower is allowed when `multiplex` may share the entry.
  constexpr bool lendable(std::uint32_t multiplex) const { return (bits_ & kMarks) == 0 && users() < multiplex; }

  // Returns true if the entry cannot be lent until a release or an enable, either of which lists it again.
  constexpr bool taken(std::uint32_t multiplex) const {
    return vacant() || reserved() || ((bits_ & kMarks) == 0 && borrowed() && users() >= multiplex);
  }

  constexpr EntryWord users(std::uint32_t n) const { return EntryWord((bits_ & ~std::uint64_t{kMaxUsers}) | n); }
  constexpr EntryWord uses(std::uint32_t n) const { return put(12, kMaxUses, n); }
  constexpr EntryWord generation(std::uint32_t n) const { return put(32, kMaxGeneration, n); }
  constexpr EntryWord home(LoopId loop) const { return put(52, 0xFF, loop); }
  constexpr EntryWord with(Mark mark) const { return EntryWord(bits_ | mark); }
  constexpr EntryWord without(Mark mark) const { return EntryWord(bits_ & ~std::uint64_t{mark}); }

  constexpr EntryWord used_once_more() const { return uses() == kMaxUses ? *this : uses(uses() + 1); }
  constexpr EntryWord used_once_less() const { return uses() == 0 || uses() == kMaxUses ? *this : uses(uses() - 1); }
  constexpr EntryWord next_generation() const {
    return generation(generation() == kMaxGeneration ? 1 : generation() + 1);
  }
  constexpr EntryWord moved_to(LoopId loop) const { return loop == home() ? *this : home(loop).next_generation(); }

  friend constexpr bool operator==(EntryWord a, EntryWord b) { return a.bits_ == b.bits_; }

 private:
  constexpr EntryWord put(unsigned shift, std::uint64_t mask, std::uint64_t value) const {
    return EntryWord((bits_ & ~(mask << shift)) | ((value & mask) << shift));
  }
  std::uint64_t bits_ = 0;
};

// ---- entry states, as in SimplePool ----

enum class EntryState : std::uint8_t {
  connecting,
  not_borrowed_valid,
  borrowed_valid,
  not_borrowed_expired,
  borrowed_expired,
  closed,
};

constexpr EntryState state(EntryWord word, Instant expires_at, Instant now) {
  if (word.reserved()) return EntryState::connecting;
  if (word.closed()) return EntryState::closed;
  const bool expired = expires_at <= now;
  if (word.borrowed()) return expired ? EntryState::borrowed_expired : EntryState::borrowed_valid;
  return expired ? EntryState::not_borrowed_expired : EntryState::not_borrowed_valid;
}

// Returns true if an event that names (generation, home) refers to the object that the entry holds now.
constexpr bool matches(EntryWord word, std::uint32_t generation, LoopId home) {
  return word.generation() == generation && word.home() == home;
}

// ---- transitions ----

using AtomicWord = Atomic<std::uint64_t>;

// Use: whether a user that gives the entry back counts as a use. `unserved`: it did not use the entry.
enum class Use : std::uint8_t { served, unserved };
enum class InspectionEnd : std::uint8_t { idle, closed };

struct Change {
  bool done = false;
  EntryWord before, after;
  explicit operator bool() const { return done; }
};

namespace detail {
// step(word, after) returns whether the change is allowed from `word`, and sets `after`.
template <class Step>
Change change(AtomicWord& word, std::memory_order order, Step step) {
  // acquire: a reader of a state also sees what its writer wrote before it. A change that pairs by seq_cst must not be
  // refused because of an old state, so its loads are seq_cst as well.
  const auto read = order == std::memory_order_seq_cst ? std::memory_order_seq_cst : std::memory_order_acquire;
  std::uint64_t bits = word.load(read);
  for (;;) {
    EntryWord after;
    if (!step(EntryWord(bits), after)) return {false, EntryWord(bits), EntryWord(bits)};
    if (word.compare_exchange_weak(bits, after.bits(), order, read)) {
      return {true, EntryWord(bits), after};
    }
  }
}
}  // namespace detail

// vacant -> reserved. seq_cst: the caller then reads whether the pool is terminated (pairs with try_terminate).
inline Change try_reserve(AtomicWord& word) {
  return detail::change(word, std::memory_order_seq_cst, [](EntryWord was, EntryWord& after) {
    after = was.without(EntryWord::kClosed).with(EntryWord::kReserved).uses(0);
    return was.vacant() && !was.reserved();
  });
}

// reserved -> idle, or borrowed in the same step. seq_cst: publishes the object, then the caller reads `attention`
// (a borrower raises `attention`, then reads the entries).
inline Change try_enable(AtomicWord& word, LoopId home, bool acquired) {
  return detail::change(word, std::memory_order_seq_cst, [=](EntryWord was, EntryWord& after) {
    after = was.without(EntryWord::kReserved).home(home);
    if (acquired) after = after.users(1).used_once_more();
    return was.reserved() && !was.closed();
  });
}

// One attempt from `expected`, which is refreshed on failure. The entry moves to loop `home` in the same step
// (takeover); for a pinned entry the caller passes the entry's home. seq_cst: pairs with try_release/try_enable; a
// failure reads as the first load does (finder.h).
inline Change try_acquire(AtomicWord& word, EntryWord& expected, LoopId home) {
  const EntryWord after = expected.users(expected.users() + 1).used_once_more().moved_to(home);
  std::uint64_t bits = expected.bits();
  const bool won =
      word.compare_exchange_strong(bits, after.bits(), std::memory_order_seq_cst, std::memory_order_seq_cst);
  const Change result{won, expected, after};
  expected = EntryWord(bits);
  return result;
}

// Removes one user. Fails if reserved, idle or closed (the caller then calls close). seq_cst: see try_enable.
inline Change try_release(AtomicWord& word, Use use = Use::served) {
  return detail::change(word, std::memory_order_seq_cst, [=](EntryWord was, EntryWord& after) {
    after = was.users(was.users() - 1);
    if (use == Use::unserved) after = after.used_once_less();
    return was.borrowed() && !was.closed();
  });
}

// Hands the entry from one borrower to the next without making it idle; `use`: that of the former one. acq_rel: the
// next borrower, perhaps on another loop, reads what this one wrote.
inline Change try_hand_off(AtomicWord& word, LoopId to, Use use = Use::served) {
  return detail::change(word, std::memory_order_acq_rel, [=](EntryWord was, EntryWord& after) {
    after = was.moved_to(to);
    if (use == Use::served) after = after.used_once_more();
    return was.users() == 1 && !was.closed();
  });
}

// Removes one user or the reservation and closes the entry. The last one makes it vacant with a new generation:
// `after.vacant()` means that the caller destroys the object.
inline Change try_close(AtomicWord& word) {
  return detail::change(word, std::memory_order_acq_rel, [](EntryWord was, EntryWord& after) {
    if (was.users() == 0 && !was.reserved()) return false;  // idle, or not the caller's
    const std::uint32_t left = was.users() > 1 ? was.users() - 1 : 0;
    after = was.users(left).without(EntryWord::kReserved).with(EntryWord::kClosed);
    if (left == 0) after = after.next_generation();
    return true;
  });
}

// idle -> vacant, only from exactly `seen`, so that a decision made on `seen` holds.
inline Change try_close_idle(AtomicWord& word, EntryWord seen) {
  return detail::change(word, std::memory_order_acq_rel, [=](EntryWord was, EntryWord& after) {
    after = was.with(EntryWord::kClosed).next_generation();
    return was == seen && was.users() == 0 && !was.inspecting() && !was.reserved() && !was.closed();
  });
}

// Closes from any state but vacant. An idle entry becomes vacant at once; otherwise its users or its inspector end it.
inline Change try_terminate(AtomicWord& word) {
  return detail::change(word, std::memory_order_seq_cst, [](EntryWord was, EntryWord& after) {
    after = was.without(EntryWord::kReserved).with(EntryWord::kClosed);
    if (after.vacant()) after = after.next_generation();
    return !was.closed();
  });
}

// idle -> inspecting, by the home loop, for an event that names the current generation. acquire: pairs with the
// release in try_release() and try_enable(), so that the inspector reads the connection as its last user left it.
inline Change try_inspect(AtomicWord& word, std::uint32_t generation, LoopId home) {
  return detail::change(word, std::memory_order_acq_rel, [=](EntryWord was, EntryWord& after) {
    after = was.with(EntryWord::kInspecting);
    return was.idle() && matches(was, generation, home);
  });
}

// inspecting -> idle (seq_cst: as in try_release), or vacant if there was data or the entry was terminated meanwhile.
inline Change end_inspect(AtomicWord& word, InspectionEnd end) {
  return detail::change(word, std::memory_order_seq_cst, [=](EntryWord was, EntryWord& after) {
    after = was.without(EntryWord::kInspecting);
    if (end == InspectionEnd::closed || was.closed()) after = after.with(EntryWord::kClosed).next_generation();
    return was.inspecting();
  });
}

}  // namespace carpool::pool
