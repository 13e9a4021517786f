// Pool: a bounded set of entries that hold any object, lent and taken back without a lock. What it promises:
//   - the cap is exact: reserve() counts at once, by CAS on one number, however many threads race;
//   - an object is lent to as many borrowers at once as its Sharing says, which may change while it is lent; a judge of
//   the caller's says yes or no to each candidate;
//   - own loop's entries first, then others': one that is lent to one at a time is taken over (home and generation
//   change in the acquiring CAS), a shared one stays where it is;
//   - two steps, reserve() and enable(), so that a connection in the making counts; enable can lend it in the same
//   step.
// After terminate() nothing is lent, reserved or enabled; who still uses an entry ends it by close().
// LockedPool (pool/locked_pool.h) has the same contract behind a mutex and is the oracle of the tests.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/assert.h"
#include "pool/atomic.h"
#include "pool/entry.h"
#include "pool/entry_index.h"
#include "pool/search.h"

namespace carpool::pool {

// A judge's word on a candidate. `doomed`: it must be closed; the search stops so that the caller can do it.
enum class Verdict : std::uint8_t { take, skip, doomed };

template <class T>
class Pool {
 public:
  // What a search found. taken: `after` is the state won. Otherwise `entry`, when set, is doomed in state `before`.
  struct Found {
    Entry<T>* entry = nullptr;
    bool taken = false;
    Word before, after;
  };

  // `multiplex`: how many share an entry unless enable() says otherwise. `index`: where the entries' numbers come from;
  // null: they are the pool's own.
  Pool(std::uint32_t cap, unsigned loops, std::uint32_t multiplex = 1, EntryIndex* index = nullptr)
      : loops_(loops),
        sharing_(limited(multiplex, multiplex > 1)),
        index_(index),
        hints_(std::make_unique<Hint[]>(loops)),
        room_(Room{}.cap(cap).bits) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    for (Block<T>* block = head(); block != nullptr;) {
      const std::unique_ptr<Block<T>> dies(block);
      block = dies->next();
      if (index_ != nullptr) index_->withdraw(dies->entry(0).index);
    }
  }

  // A place that counts against the cap from now on, or null: full, or terminated.
  Entry<T>* reserve() {
    if (!count_in()) return nullptr;
    for (;;) {
      for (Block<T>* block = head(); block != nullptr; block = block->next()) {
        if (Entry<T>* entry = claim_vacant(*block)) return terminated() ? undo(*entry) : entry;
      }
      grow();
    }
  }

  // The object is in entry.value: it can be borrowed from now on, or is by the caller. False: the entry was closed
  // meanwhile (terminate); the caller ends the object and calls vacate().
  bool enable(Entry<T>& entry, LoopId home, bool acquired) { return enable(entry, home, acquired, sharing_); }
  bool enable(Entry<T>& entry, LoopId home, bool acquired, Sharing sharing) {
    sharing = limited(sharing.most, sharing.stays);
    // relaxed: the word, set next, publishes it.
    entry.sharing_bits.store(sharing.bits(), std::memory_order_relaxed);
    if (!try_enable(entry.word, home, acquired)) return false;
    if (sharing.most > (acquired ? 1U : 0U)) entry.block->idle(home).set(entry.bit());
    return true;
  }

  // From now on `most` may use the entry at once; who uses it already goes on. The caller keeps it from being vacated.
  void share(Entry<T>& entry, std::uint32_t most) {
    const Sharing now = limited(most, entry.sharing().stays);
    // seq_cst: pairs with unlist(), as does the reading of the word.
    entry.sharing_bits.store(now.bits(), std::memory_order_seq_cst);
    const Word word(entry.word.load(std::memory_order_seq_cst));
    if (word.lendable(now.most)) list(entry, word.home());
  }

  // A free entry for `loop`. judge(entry, word) is asked before each attempt. `on_loop`: the calling thread drives that
  // loop, so its hint may be used.
  template <class Judge>
  Found acquire(LoopId loop, bool on_loop, Judge&& judge) {
    if (on_loop) {
      Entry<T>* hint = hints_[loop].last;
      if (hint != nullptr && Word(hint->word.load(std::memory_order_relaxed)).home() == loop) {
        if (Found found = attempt(*hint, loop, loop, judge); found.entry != nullptr) return found;
      }
    }
    if (Found found = search(loop, loop, judge); found.entry != nullptr) return found;
    for (unsigned n = 1; n < loops_; ++n) {
      const auto foreign = static_cast<LoopId>(FirstPlace::foreign_loop(loop, n, loops_));
      if (Found found = search(foreign, loop, judge); found.entry != nullptr) return found;
    }
    return {};
  }

  // As acquire(), beginning at the place that `key` falls on. near: the own loop's entries first, then others'; else
  // whichever comes next, of any loop.
  template <class Judge>
  Found acquire_from(LoopId loop, std::uint32_t key, bool near, Judge&& judge) {
    const std::uint32_t known = places();
    const std::uint32_t start = known == 0 ? 0 : key % known;
    if (!near) return search_all(loop, start, judge);
    for (unsigned n = 0; n < loops_; ++n) {
      const auto map = static_cast<LoopId>((loop + n) % loops_);
      const auto idle = [map](Block<T>& block) { return block.idle(map).read(); };
      if (Found found = search_from(loop, start, idle, judge); found.entry != nullptr) return found;
    }
    return {};
  }

  // One user is done; on the entry's home loop, or any if it is shared. False: it is closed (or was not borrowed):
  // close() it.
  bool release(Entry<T>& entry, bool used = true) {
    const bool stays = entry.sharing().stays;
    const Change change = try_release(entry.word, used);
    if (!change) return false;
    if (stays) {
      list(entry, change.after.home());
    } else {
      publish(entry, change.after.home());
    }
    return true;
  }

  // The entry became free by a verb that the caller called: makes it findable. The caller touches it no more.
  void publish(Entry<T>& entry, LoopId home) {
    hints_[home].last = &entry;
    entry.block->idle(home).set(entry.bit());
  }

  // A user, or the holder of a reservation, gives the entry up. True: it was the last; it ends the object, then
  // vacate().
  bool close(Entry<T>& entry) {
    const Change change = try_close(entry.word);
    return change.done && change.after.vacant();
  }

  // A free entry, as it was seen, closes. True: the caller ends the object, then vacate().
  bool close_idle(Entry<T>& entry, Word seen) {
    if (!try_close_idle(entry.word, seen)) return false;
    entry.block->idle(seen.home()).clear(entry.bit());
    return true;
  }

  // The object is gone: the place can be reserved again.
  void vacate(Entry<T>& entry) {
    entry.block->vacant().set(entry.bit());
    room_.fetch_sub(1, std::memory_order_seq_cst);  // only now: the cap counts objects until they are really gone
  }

  // end(entry) is called for each entry that was free: end its object, then vacate(). Who uses one closes it; who holds
  // a reservation learns of it from enable().
  template <class End>
  void terminate(End&& end) {
    if (Room{room_.fetch_or(Room::kTerminated, std::memory_order_seq_cst)}.terminated()) return;
    for_each([&](Entry<T>& entry) {
      const Change change = try_terminate(entry.word);
      if (!change || !change.after.vacant() || change.before.reserved()) return;
      entry.block->idle(change.before.home()).clear(entry.bit());
      end(entry);
    });
  }

  // Every entry there is, vacant ones too, in the order of places.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (Block<T>* block = head(); block != nullptr; block = block->next()) {
      for (unsigned place = 0; place < kBlockEntries; ++place) visit(block->entry(place));
    }
  }
  // Every entry that a map calls free; it may no longer be.
  template <class Visit>
  void for_each_idle(Visit&& visit) const {
    for (Block<T>* block = head(); block != nullptr; block = block->next()) {
      std::uint64_t bits = 0;
      for (unsigned loop = 0; loop < loops_; ++loop) bits |= block->idle(static_cast<LoopId>(loop)).read();
      for (; bits != 0; bits &= bits - 1) visit(block->entry(FirstPlace::pick(bits)));
    }
  }
  bool has_idle() const {
    bool any = false;
    for_each_idle([&](Entry<T>& entry) { any |= Word(entry.word.load(std::memory_order_seq_cst)).idle(); });
    return any;
  }

  std::uint32_t cap() const { return room(std::memory_order_relaxed).cap(); }
  // Below what is in use: nothing is reserved until use fell.
  void cap(std::uint32_t cap) {
    Room now = room(std::memory_order_relaxed);
    // seq_cst: whoever lowers it and then reads in_use() agrees with reserve() on what came first.
    while (!room_.compare_exchange_weak(now.bits, now.cap(cap).bits, std::memory_order_seq_cst,
                                        std::memory_order_relaxed)) {
    }
  }
  std::uint32_t in_use() const { return room().in_use(); }
  bool full() const { return room().full(); }
  bool terminated() const { return room().terminated(); }

 private:
  static constexpr Sharing limited(std::uint32_t most, bool stays) {
    return {most < Word::kMaxUsers ? most : Word::kMaxUsers, stays};
  }
  // terminated 1 | cap 31 | in use 32: one word, so that a reservation and a cap that falls agree on what came first.
  struct Room {
    static constexpr std::uint64_t kTerminated = std::uint64_t{1} << 63;
    std::uint32_t in_use() const { return static_cast<std::uint32_t>(bits); }
    std::uint32_t cap() const { return static_cast<std::uint32_t>((bits & ~kTerminated) >> 32); }
    bool terminated() const { return (bits & kTerminated) != 0; }
    bool full() const { return in_use() >= cap(); }
    Room cap(std::uint32_t cap) const {
      const std::uint64_t mine = std::uint64_t{cap} << 32 & ~kTerminated;
      return {(bits & (kTerminated | std::uint64_t{0xFFFFFFFF})) | mine};
    }
    std::uint64_t bits = 0;
  };
  struct alignas(kCacheLine) Hint {
    Entry<T>* last = nullptr;  // the own loop's thread only; a stale one is harmless, the CAS decides
  };

  Block<T>* head() const { return head_.load(std::memory_order_acquire); }

  Room room(std::memory_order order = std::memory_order_seq_cst) const { return {room_.load(order)}; }

  bool count_in() {
    Room now = room(std::memory_order_relaxed);
    do {
      if (now.terminated() || now.full()) return false;
      // seq_cst: reserve, terminate and cap agree on an order.
    } while (
        !room_.compare_exchange_weak(now.bits, now.bits + 1, std::memory_order_seq_cst, std::memory_order_relaxed));
    return true;
  }

  Entry<T>* claim_vacant(Block<T>& block) {
    for (std::uint64_t bits = block.vacant().read(); bits != 0; bits &= bits - 1) {
      Entry<T>& entry = block.entry(FirstPlace::pick(bits));
      if (!block.vacant().claim(entry.bit())) continue;
      entry.sharing_bits.store(sharing_.bits(), std::memory_order_relaxed);  // until enable() says
      CARPOOL_ASSERT(try_reserve(entry.word));
      return &entry;
    }
    return nullptr;
  }

  // A reservation that raced terminate(): one of the two closes it. seq_cst on both sides: terminate() sets its flag,
  // then reads the words; here the word was set, then the flag is read.
  Entry<T>* undo(Entry<T>& entry) {
    static_cast<void>(try_close(entry.word));
    vacate(entry);
    return nullptr;
  }

  void grow() {
    const std::scoped_lock lock(growing_);
    Block<T>* last = head();
    for (Block<T>* block = last; block != nullptr; block = block->next()) {
      if (block->vacant().read() != 0) return;  // somebody was faster
      last = block;
    }
    const EntryIndex::Place place =
        index_ != nullptr ? index_->reserve() : EntryIndex::Place{blocks_ * kBlockEntries, 1};
    ++blocks_;
    auto block = std::make_unique<Block<T>>(loops_, place.first_index, place.generation);
    if (index_ != nullptr) index_->publish(place, *block);
    if (last == nullptr) {
      head_.store(block.release(), std::memory_order_release);  // owned by the chain until ~Pool
    } else {
      last->append(*block.release());
    }
  }

  template <class Judge>
  Found search(LoopId map, LoopId loop, Judge&& judge) {
    for (Block<T>* block = head(); block != nullptr; block = block->next()) {
      for (std::uint64_t bits = block->idle(map).read(); bits != 0;) {
        const unsigned place = FirstPlace::pick(bits);
        bits &= ~(std::uint64_t{1} << place);
        if (Found found = attempt(block->entry(place), loop, map, judge); found.entry != nullptr) return found;
      }
    }
    return {};
  }

  // As many places as may be in use: a key falls on one of them.
  std::uint32_t places() const {
    const Room now = room(std::memory_order_relaxed);
    return now.in_use() < now.cap() ? now.cap() : now.in_use();
  }

  template <class Judge>
  Found search_all(LoopId loop, std::uint32_t start, Judge&& judge) {
    const auto idle = [this](Block<T>& block) {
      std::uint64_t bits = 0;
      for (unsigned map = 0; map < loops_; ++map) bits |= block.idle(static_cast<LoopId>(map)).read();
      return bits;
    };
    return search_from(loop, start, idle, judge);
  }

  // Round all places once, from `start`; bits(block) are the free ones.
  template <class Bits, class Judge>
  Found search_from(LoopId loop, std::uint32_t start, Bits&& bits, Judge&& judge) {
    const std::uint32_t first = start / kBlockEntries;
    const unsigned within = start % kBlockEntries;
    for (const bool wrapped : {false, true}) {
      std::uint32_t number = 0;
      for (Block<T>* block = head(); block != nullptr; block = block->next(), ++number) {
        if (wrapped ? number > first : number < first) continue;
        std::uint64_t free = bits(*block);
        if (number == first) free = wrapped ? before_place(free, within) : from_place(free, within);
        for (; free != 0; free &= free - 1) {
          Entry<T>& entry = block->entry(FirstPlace::pick(free));
          const LoopId map = Word(entry.word.load(std::memory_order_relaxed)).home();
          if (Found found = attempt(entry, loop, map, judge); found.entry != nullptr) return found;
        }
      }
    }
    return {};
  }

  // A lost race is tried again on the same entry; only one that cannot be lent, or is not wanted, ends the attempt.
  template <class Judge>
  Found attempt(Entry<T>& entry, LoopId loop, LoopId map, Judge&& judge) {
    Word word(entry.word.load(std::memory_order_acquire));
    for (;;) {
      const Sharing sharing = entry.sharing();
      if (!word.lendable(sharing.most)) return {};
      const Verdict verdict = judge(entry, word);
      if (verdict == Verdict::skip) return {};
      if (verdict == Verdict::doomed) return {&entry, false, word, word};
      if (const Change change = try_acquire(entry.word, word, sharing.stays ? word.home() : loop)) {
        if (change.after.users() >= sharing.most) unlist(entry, change, map, sharing);
        return {&entry, true, change.before, change.after};
      }
    }
  }

  // Only the winner of the acquiring CAS clears the bit, so none is lost. With a hint or a late setter a map may name
  // an entry that is not free, or moved: harmless, the word decides.
  void unlist(Entry<T>& entry, const Change& change, LoopId map, Sharing sharing) {
    entry.block->idle(change.before.home()).clear(entry.bit());
    if (map != change.before.home()) entry.block->idle(map).clear(entry.bit());
    if (!sharing.stays) return;
    // Another user may have left between the CAS and the clear, or the limit grown: then the bit was theirs. seq_cst on
    // all: they change word or limit, then look at the bit; here the bit was cleared, then both are read.
    const Word word(entry.word.load(std::memory_order_seq_cst));
    const Sharing now = Sharing::of(entry.sharing_bits.load(std::memory_order_seq_cst));
    if (word.lendable(now.most)) entry.block->idle(word.home()).set(entry.bit());
  }

  // A shared entry can be lent (again): findable, if it is not already.
  void list(Entry<T>& entry, LoopId home) {
    Bitmap& idle = entry.block->idle(home);
    if ((idle.read() & entry.bit()) == 0) idle.set(entry.bit());
  }

  const unsigned loops_;
  const Sharing sharing_;
  EntryIndex* const index_;
  std::unique_ptr<Hint[]> hints_;
  Atomic<Block<T>*> head_{nullptr};
  Mutex growing_;
  std::uint32_t blocks_ = 0;  // guarded by growing_
  alignas(kCacheLine) Atomic<std::uint64_t> room_;
};

}  // namespace carpool::pool
