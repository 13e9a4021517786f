// The state of an entry: one 64-bit word, and the only functions that change it.
//
//   marks 4 | home loop 8 | generation 20 | uses 20 | users 12
//
// users       borrowers now (1 at most for HTTP/1.1)
// uses        borrows ever of the thing in it; saturates
// generation  changes when the entry moves to another loop and when it closes: an event that was already on its way
//             names the old one and is dropped. Never 0
// marks       reserved (a dial is under way), expired (never lend it again), closed, inspecting (its loop looks at the
// wire)
//
// Multiplex count and use count change in the same CAS. Every verb is a CAS loop; nothing else touches the word.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "pool/core/atomic.h"
#include "pool/destination/environment.h"

namespace carpool::pool {

class EntryWord {
 public:
  static constexpr std::uint32_t kMaxUsers = (1u << 12) - 1;
  static constexpr std::uint32_t kMaxUses = (1u << 20) - 1;
  static constexpr std::uint32_t kMaxGeneration = (1u << 20) - 1;
  enum Mark : std::uint64_t {
    kReserved = std::uint64_t{1} << 60,
    kExpired = std::uint64_t{1} << 61,
    kClosed = std::uint64_t{1} << 62,
    kInspecting = std::uint64_t{1} << 63,
    kMarks = std::uint64_t{15} << 60,
  };

  constexpr EntryWord() = default;
  constexpr explicit EntryWord(std::uint64_t bits) : bits_(bits) {}
  // An empty place.
  static constexpr EntryWord vacant(std::uint32_t generation) { return EntryWord(kClosed).generation(generation); }

  constexpr std::uint64_t bits() const { return bits_; }
  constexpr std::uint32_t users() const { return static_cast<std::uint32_t>(bits_ & kMaxUsers); }
  constexpr std::uint32_t uses() const { return static_cast<std::uint32_t>(bits_ >> 12) & kMaxUses; }
  constexpr std::uint32_t generation() const { return static_cast<std::uint32_t>(bits_ >> 32) & kMaxGeneration; }
  constexpr LoopId home() const { return static_cast<LoopId>(bits_ >> 52); }
  constexpr bool reserved() const { return (bits_ & kReserved) != 0; }
  constexpr bool expired() const { return (bits_ & kExpired) != 0; }
  constexpr bool closed() const { return (bits_ & kClosed) != 0; }
  constexpr bool inspecting() const { return (bits_ & kInspecting) != 0; }

  constexpr bool vacant() const { return closed() && users() == 0 && !inspecting(); }
  constexpr bool idle() const { return (bits_ & (kMarks | kMaxUsers)) == 0; }
  constexpr bool borrowed() const { return users() != 0; }
  // May be lent to one more when `multiplex` at once are allowed.
  constexpr bool lendable(std::uint32_t multiplex) const { return (bits_ & kMarks) == 0 && users() < multiplex; }

  // Not to be lent before somebody gives it back, or fills the place; either lists it then.
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

// ---- SimplePool's judgement ----

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
  const bool expired = word.expired() || expires_at <= now;
  if (word.borrowed()) return expired ? EntryState::borrowed_expired : EntryState::borrowed_valid;
  return expired ? EntryState::not_borrowed_expired : EntryState::not_borrowed_valid;
}

// Does an event that names (generation, home) speak of the thing that is in the entry now, where it is now?
constexpr bool matches(EntryWord word, std::uint32_t generation, LoopId home) {
#ifdef CARPOOL_MUTANT_GENERATION  // a test that this check matters is built with it; nothing else is
  static_cast<void>(generation);
  return word.home() == home;
#else
  return word.generation() == generation && word.home() == home;
#endif
}

// ---- verbs ----

using AtomicWord = Atomic<std::uint64_t>;

struct Change {
  bool done = false;
  EntryWord before, after;
  explicit operator bool() const { return done; }
};

namespace detail {
// step(word, after) says whether the change is allowed from `word` and what comes of it.
template <class Step>
Change change(AtomicWord& word, std::memory_order order, Step step) {
  // acquire: whoever reads a state also sees what its maker wrote before it.
  std::uint64_t bits = word.load(std::memory_order_acquire);
  for (;;) {
    EntryWord after;
    if (!step(EntryWord(bits), after)) return {false, EntryWord(bits), EntryWord(bits)};
    if (word.compare_exchange_weak(bits, after.bits(), order, std::memory_order_acquire)) {
      return {true, EntryWord(bits), after};
    }
  }
}
}  // namespace detail

// vacant -> reserved. seq_cst: then the caller reads whether the pool is terminated (the pair of try_terminate).
inline Change try_reserve(AtomicWord& word) {
  return detail::change(word, std::memory_order_seq_cst, [](EntryWord was, EntryWord& after) {
    after = was.without(EntryWord::kClosed).with(EntryWord::kReserved).uses(0);
    return was.vacant() && !was.reserved();
  });
}

// reserved -> idle, or borrowed by one in the same step. seq_cst: publishes the thing, then the caller reads `waiting`
// (the pair of a borrower that publishes `waiting`, then reads the entries).
inline Change try_enable(AtomicWord& word, LoopId home, bool acquired) {
  return detail::change(word, std::memory_order_seq_cst, [=](EntryWord was, EntryWord& after) {
    after = was.without(EntryWord::kReserved).home(home);
    if (acquired) after = after.users(1).used_once_more();
    return was.reserved() && !was.closed();
  });
}

// One attempt from `expected`, which is refreshed when it fails. An entry of another loop than `home` moves there in
// the same step (takeover); one that stays is acquired with its own. acquire: pairs with the release in
// try_release/try_enable; seq_cst: what a failure finds instead is a look as the first was (finder.h).
inline Change try_acquire(AtomicWord& word, EntryWord& expected, LoopId home) {
  const EntryWord after = expected.users(expected.users() + 1).used_once_more().moved_to(home);
  std::uint64_t bits = expected.bits();
  const bool won =
      word.compare_exchange_strong(bits, after.bits(), std::memory_order_seq_cst, std::memory_order_seq_cst);
  const Change result{won, expected, after};
  expected = EntryWord(bits);
  return result;
}

// Gives one user's right back. Not from reserved, idle or closed (the caller closes then). seq_cst: see try_enable.
inline Change try_release(AtomicWord& word, bool used = true) {
  return detail::change(word, std::memory_order_seq_cst, [=](EntryWord was, EntryWord& after) {
    after = was.users(was.users() - 1);
    if (!used) after = after.used_once_less();
    return was.borrowed() && !was.closed();
  });
}

// From one borrower to the next without being free in between; `used`: it served the former one. release: the next
// owner, on another loop perhaps, reads what this one wrote.
inline Change try_hand(AtomicWord& word, LoopId to, bool used = true) {
  return detail::change(word, std::memory_order_acq_rel, [=](EntryWord was, EntryWord& after) {
    after = was.moved_to(to);
    if (used) after = after.used_once_more();
    return was.users() == 1 && !was.closed();
  });
}

// Never lent again; closes with its last user. relaxed would do for the mark; acq_rel keeps one rule for all.
inline Change try_retire(AtomicWord& word) {
  return detail::change(word, std::memory_order_acq_rel, [](EntryWord was, EntryWord& after) {
    after = was.with(EntryWord::kExpired);
    return !was.closed() && !was.expired();
  });
}

// One user, or the holder of a reservation, gives up: closed for all from now on, and with the last user the place is
// vacant and the generation another. `after.vacant()`: the caller is the one who ends the thing.
inline Change try_close(AtomicWord& word) {
  return detail::change(word, std::memory_order_acq_rel, [](EntryWord was, EntryWord& after) {
    if (was.users() == 0 && !was.reserved()) return false;  // nobody's, or not the caller's
    const std::uint32_t left = was.users() > 1 ? was.users() - 1 : 0;
    after = was.users(left).without(EntryWord::kReserved).with(EntryWord::kClosed);
    if (left == 0) after = after.without(EntryWord::kExpired).next_generation();
    return true;
  });
}

// A free one closes; exactly as it was seen, so that a judgement made on `seen` holds.
inline Change try_close_idle(AtomicWord& word, EntryWord seen) {
  return detail::change(word, std::memory_order_acq_rel, [=](EntryWord was, EntryWord& after) {
    after = was.without(EntryWord::kExpired).with(EntryWord::kClosed).next_generation();
    return was == seen && was.users() == 0 && !was.inspecting() && !was.reserved() && !was.closed();
  });
}

// From any state but vacant: nobody may borrow it any more; who uses or inspects it ends it. What is free ends at once.
inline Change try_terminate(AtomicWord& word) {
  return detail::change(word, std::memory_order_seq_cst, [](EntryWord was, EntryWord& after) {
    after = was.without(EntryWord::kReserved).without(EntryWord::kExpired).with(EntryWord::kClosed);
    if (after.vacant()) after = after.next_generation();
    return !was.closed();
  });
}

// idle -> inspecting, by the home loop, on an event that names the entry as it is. acquire: as try_acquire.
inline Change try_inspect(AtomicWord& word, std::uint32_t generation, LoopId home) {
  return detail::change(word, std::memory_order_acq_rel, [=](EntryWord was, EntryWord& after) {
    after = was.with(EntryWord::kInspecting);
    return was.idle() && matches(was, generation, home);
  });
}

// inspecting -> idle (seq_cst: as try_release) or, if not quiet or terminated meanwhile, vacant.
inline Change end_inspect(AtomicWord& word, bool quiet) {
  return detail::change(word, std::memory_order_seq_cst, [=](EntryWord was, EntryWord& after) {
    after = was.without(EntryWord::kInspecting);
    if (!quiet || was.closed()) after = after.without(EntryWord::kExpired).with(EntryWord::kClosed).next_generation();
    return was.inspecting();
  });
}

}  // namespace carpool::pool
