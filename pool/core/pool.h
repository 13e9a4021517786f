// Pool: a bounded set of entries that hold any object, lent and returned without a lock. Guarantees:
//   - the cap is exact: reserve() counts at once, by CAS on one number, however many threads race;
//   - an object has at most as many concurrent borrowers as its Multiplexing allows, which may change while it is
//     lent; a matcher of the caller accepts or skips each candidate;
//   - entries of the own loop first, then of others, or any (Strategy): an exclusive entry is taken over (home and
//     generation change in the acquiring CAS), a pinned one stays on its loop;
//   - two steps, reserve() and enable(), so that a connection being dialed counts; enable() can lend it at once.
// After terminate() nothing is lent, reserved or enabled; current users end their entries by close().
// The search: pool/core/finder.h. Handles, hooks and a factory: pool/core/object_pool.h. LockedPool
// (tests/unit/locked_pool.h) has the same contract behind a mutex and is the oracle of the tests.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/assert.h"
#include "pool/atomic.h"
#include "pool/core/audit_report.h"
#include "pool/core/blocks.h"
#include "pool/core/capacity.h"
#include "pool/core/entry.h"
#include "pool/core/entry_index.h"
#include "pool/core/finder.h"
#include "pool/policy/search_strategy.h"

namespace carpool::pool {

template <class T>
class Pool {
 public:
  using Found = typename Finder<T>::Found;

  // `multiplex`: users per entry unless enable() sets another number. `index` assigns process-wide numbers to the
  // entries; null: numbers are local to the pool. `seed` starts the random numbers of Strategy::random.
  Pool(std::uint32_t cap, unsigned loops, std::uint32_t multiplex = 1, EntryIndex* index = nullptr,
       std::uint64_t seed = 0)
      : loops_(loops),
        sharing_(limited(multiplex, multiplex > 1)),
        blocks_(loops, index),
        finder_(blocks_, loops, seed),
        capacity_(cap) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() = default;

  // Returns an entry that counts against the cap from now on, or null if the pool is full or terminated. Throws
  // std::bad_alloc if another block is needed and memory is exhausted; nothing is counted then.
  Entry<T>* reserve() {
    if (!capacity_.acquire()) return nullptr;
    Undo counted{&capacity_};
    Entry<T>* entry = blocks_.claim_vacant();
    for (; entry == nullptr; entry = blocks_.claim_vacant()) blocks_.grow();
    counted.capacity = nullptr;
    entry->multiplexing_bits.store(sharing_.bits(), std::memory_order_relaxed);  // until enable() sets it
    CARPOOL_ASSERT(try_reserve(entry->word));
    return terminated() ? undo(*entry) : entry;
  }

  // Publishes the object in entry.value: idle, or borrowed by the caller. Returns false if terminate() closed the entry
  // meanwhile; the caller destroys the object and calls vacate().
  bool enable(Entry<T>& entry, LoopId home, bool acquired) { return enable(entry, home, acquired, sharing_); }
  bool enable(Entry<T>& entry, LoopId home, bool acquired, Multiplexing multiplexing) {
    multiplexing = limited(multiplexing.max_users, multiplexing.pinned);
    // relaxed: the word, written next, publishes it.
    entry.multiplexing_bits.store(multiplexing.bits(), std::memory_order_relaxed);
    if (!try_enable(entry.word, home, acquired)) return false;
    // An idle entry is listed even if `max_users` is 0: it can still be closed.
    if (!acquired || multiplexing.max_users > 1) finder_.mark_available(entry, home);
    return true;
  }

  // Allows `max_users` users at once; current users continue. The caller must keep the entry from being vacated.
  void share(Entry<T>& entry, std::uint32_t max_users) {
    const Multiplexing now = limited(max_users, entry.multiplexing().pinned);
    // seq_cst: pairs with Finder::clear_stale_bit(), as does the load of the word.
    entry.multiplexing_bits.store(now.bits(), std::memory_order_seq_cst);
    const EntryWord word(entry.word.load(std::memory_order_seq_cst));
    if (word.lendable(now.max_users)) finder_.mark_available(entry, word.home());
  }

  // Returns an available entry, searched as `where` says. Calls matcher(entry, word) before each attempt.
  template <class Matcher>
  Found acquire(const SearchHint& where, Matcher&& matcher) {
    Found found;
    static_cast<void>(finder_.find(where, cap(), matcher, found));
    return found;
  }
  template <class Matcher>
  Found acquire(LoopId loop, bool on_loop, Matcher&& matcher) {
    return acquire(SearchHint{loop, on_loop}, matcher);
  }

  // For a caller that chooses among several entries before it takes one: see Finder.
  template <class Fits>
  Entry<T>* draw(LoopId loop, Fits&& fits) {
    return finder_.draw(loop, fits);
  }
  template <class Matcher>
  bool acquire_entry(Entry<T>& entry, const SearchHint& where, Matcher& matcher, Found& found) {
    return finder_.acquire_entry(entry, where, matcher, found);
  }
  std::uint32_t next_random(LoopId loop) { return finder_.next_random(loop); }

  // Removes one user. Returns false if the entry is closed or was not borrowed; the caller then calls close().
  bool release(Entry<T>& entry, Use use = Use::served) {
    const bool pinned = entry.multiplexing().pinned;
    const Change change = try_release(entry.word, use);
    if (!change) return false;
    if (pinned) {
      finder_.mark_available(entry, change.after.home());
    } else {
      finder_.mark_idle(entry, change.after.home());
    }
    return true;
  }

  // Lists an entry that a transition outside this class made idle. The caller must not touch it afterwards.
  void publish(Entry<T>& entry, LoopId home) { finder_.mark_idle(entry, home); }

  // Removes a user or a reservation and closes the entry. Returns true for the last one, which destroys the object and
  // calls vacate().
  bool close(Entry<T>& entry) {
    const Change change = try_close(entry.word);
    return change.done && change.after.vacant();
  }

  // Closes an idle entry in exactly state `seen`. Returns true if the caller must destroy the object and call vacate().
  bool close_idle(Entry<T>& entry, EntryWord seen) {
    if (!try_close_idle(entry.word, seen)) return false;
    entry.block->idle(seen.home()).clear(entry.bit());
    return true;
  }

  // Allows the entry to be reserved again. Its object must have been destroyed.
  void vacate(Entry<T>& entry) {
    blocks_.give_back(entry);
    capacity_.release();  // last: the cap counts objects until they are destroyed
  }

  // Calls end(entry), which destroys the object and calls vacate(), for each idle entry. Users close their entries
  // themselves; the holder of a reservation gets false from enable().
  template <class End>
  void terminate(End&& end) {
    if (!capacity_.terminate()) return;
    for_each([&](Entry<T>& entry) {
      const Change change = try_terminate(entry.word);
      if (!change || !change.after.vacant() || change.before.reserved()) return;
      entry.block->idle(change.before.home()).clear(entry.bit());
      end(entry);
    });
  }

  // Visits every entry, vacant ones included, in order of position.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for_each(0, blocks_.count(), visit);
  }
  // Visits the entries of `count` blocks from block `first` on.
  template <class Visit>
  void for_each(std::uint32_t first, std::uint32_t count, Visit&& visit) const {
    const std::uint32_t end = std::min(blocks_.count(), first + count);
    for (std::uint32_t number = first; number < end; ++number) {
      for (unsigned place = 0; place < kBlockEntries; ++place) {
        Entry<T>* const entry = blocks_.at(number).find(place);
        if (entry == nullptr) break;
        visit(*entry);
      }
    }
  }
  std::uint32_t blocks() const { return blocks_.count(); }
  // Returns the entry at this position of a block that exists; null if it does not exist yet.
  Entry<T>* find(std::uint32_t place) const { return blocks_.at(place / kBlockEntries).find(place % kBlockEntries); }
  // Visits entries that a map lists as available (they may no longer be), from block `first` on and around, until
  // visit(entry) returns true. Returns that entry, or null.
  template <class Visit>
  Entry<T>* find_idle(std::uint32_t first, Visit&& visit) const {
    const std::uint32_t known = blocks_.count();
    for (std::uint32_t n = 0; n < known; ++n) {
      Block<T>& block = blocks_.at((first + n) % known);
      for (std::uint64_t bits = block.idle_anywhere(); bits != 0; bits &= bits - 1) {
        Entry<T>& entry = block.entry(SearchOrder::pick(bits));
        if (visit(entry)) return &entry;
      }
    }
    return nullptr;
  }
  template <class Visit>
  void for_each_idle(Visit&& visit) const {
    static_cast<void>(find_idle(0, [&](Entry<T>& entry) { return visit(entry), false; }));
  }
  bool has_idle() const {
    return find_idle(0, [](const Entry<T>& entry) {
             return EntryWord(entry.word.load(std::memory_order_seq_cst)).idle();
           }) != nullptr;
  }

  unsigned loops() const { return loops_; }
  std::uint32_t cap() const { return capacity_.now(std::memory_order_relaxed).cap(); }
  // A cap below the current use blocks reserve() until use has fallen.
  void cap(std::uint32_t cap) { capacity_.cap(cap); }
  std::uint32_t in_use() const { return capacity_.now().in_use(); }
  bool full() const { return capacity_.now().full(); }
  bool terminated() const { return capacity_.now().terminated(); }

  // Recounts the entries. Must be called while no other thread uses the pool.
  void audit(AuditReport& report) const {
    report.equal("the use of the capacity", in_use(), blocks_.audit(report));
    finder_.audit(report);
  }

 private:
  struct Undo {
    Capacity* capacity;
    explicit Undo(Capacity* counted) : capacity(counted) {}
    Undo(const Undo&) = delete;
    Undo& operator=(const Undo&) = delete;
    ~Undo() {
      if (capacity != nullptr) capacity->release();
    }
  };
  static constexpr Multiplexing limited(std::uint32_t max_users, bool pinned) {
    return {max_users < EntryWord::kMaxUsers ? max_users : EntryWord::kMaxUsers, pinned};
  }

  // Undoes a reservation that raced with terminate(): one of the two closes it. seq_cst on both sides: terminate() sets
  // its flag, then reads the words; here the word was set, then the flag is read.
  Entry<T>* undo(Entry<T>& entry) {
    static_cast<void>(try_close(entry.word));
    vacate(entry);
    return nullptr;
  }

  const unsigned loops_;
  const Multiplexing sharing_;
  Blocks<T> blocks_;
  Finder<T> finder_;
  alignas(kCacheLine) Capacity capacity_;
};

}  // namespace carpool::pool
