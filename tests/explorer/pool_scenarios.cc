// Scenarios of Pool<T>: the cap, the terminated flag, and threads that contend for one entry.
#include <atomic>
#include <string>

#include "pool/core/object_pool.h"
#include "pool/core/pool.h"
#include "tests/explorer/scenarios.h"

namespace carpool::explore {
namespace {

using pool::EntryWord;
using pool::Match;
using IntPool = pool::Pool<int>;  // value: the number of current users, as the users count it
using IntEntry = pool::Entry<int>;

class Bench : public Scenario {
 public:
  unsigned threads() const override { return threads_; }

 protected:
  Bench(unsigned threads, std::uint32_t cap, std::uint32_t multiplex = 1)
      : pool_(cap, threads, multiplex), threads_(threads), multiplex_(multiplex) {}

  IntEntry& enabled(LoopId home) {
    IntEntry& entry = *pool_.reserve();
    pool_.enable(entry, home, false);
    return entry;
  }
  IntEntry* take(unsigned thread) {
    const auto found =
        pool_.acquire(static_cast<LoopId>(thread), true, [](const IntEntry&, EntryWord) { return Match::take; });
    if (!found.taken) return nullptr;
    if (++found.entry->value > static_cast<int>(multiplex_)) wrong_ = "too many users on one";
    return found.entry;
  }
  void give(IntEntry& entry) {
    --entry.value;
    if (!pool_.release(entry)) close(entry);
  }
  void close(IntEntry& entry) {
    if (pool_.close(entry)) end(entry);
  }
  void end(IntEntry& entry) {
    if (entry.value != 0) wrong_ = "ended while in use";
    ++ended_;
    pool_.vacate(entry);
  }
  // Idle entries can be found: exactly as many as there are.
  std::string findable(std::uint32_t free) {
    for (std::uint32_t n = 0; n < free; ++n) {
      if (take(0) == nullptr) return "a free entry cannot be found";
    }
    return take(0) == nullptr ? wrong_ : "more is lent than there is";
  }

  IntPool pool_;
  int ended_ = 0;
  std::string wrong_;

 private:
  const unsigned threads_;
  const std::uint32_t multiplex_;
};

class TwoTakersOneEntry : public Bench {
 public:
  TwoTakersOneEntry() : Bench(3, 1) { enabled(0); }
  void run(unsigned thread) override {
    if (IntEntry* entry = take(thread)) give(*entry);
  }
  std::string verdict() override { return findable(1); }
};

// Each user of a shared entry sets or clears its bit according to the count; no entry may be lost.
class SharedEntry : public Bench {
 public:
  SharedEntry() : Bench(2, 1, 2) { enabled(0); }
  void run(unsigned) override {
    for (int n = 0; n < 2; ++n) {
      if (IntEntry* entry = take(0)) give(*entry);
    }
  }
  std::string verdict() override { return findable(2); }
};

// A user takes the entry's last stream while another releases one: a third must still find the entry.
class SharedToItsLimit : public Bench {
 public:
  SharedToItsLimit() : Bench(2, 1, 2) { take(0); }
  void run(unsigned thread) override { thread == 0 ? static_cast<void>(take(0)) : give(entry_); }
  std::string verdict() override { return findable(1); }

 private:
  IntEntry& entry_ = enabled(0);
};

// In the second block, of which a bit says whether it has an idle entry. One thread releases, one borrows, and one
// follows the bit without success: the borrower finds the entry, or one of the others sees the waiter and searches for
// it.
class BorrowerMeetsAnEmptiedBlock : public Bench {
 public:
  BorrowerMeetsAnEmptiedBlock() : Bench(3, pool::kBlockEntries + 1) {
    for (unsigned n = 0; n < pool::kBlockEntries; ++n) pool_.reserve();
    enabled(0);
    take(0);
  }
  void run(unsigned thread) override {
    if (thread == 0) {
      pool_.release(*pool_.find(pool::kBlockEntries));
      search_if_wanted();
    } else if (thread == 1) {
      wanted_.store(1, std::memory_order_seq_cst);
      met_ |= search().taken;
    } else {
      for (int n = 0; n < 2 && !other_has_it_; ++n) {
        const auto found = search();
        other_has_it_ = found.taken;
        if (found.relisted && !found.taken) search_if_wanted();
      }
    }
  }
  std::string verdict() override {
    return met_ || other_has_it_ ? std::string() : "what was given back is not found by who waits for it";
  }

 private:
  IntPool::Found search() {
    return pool_.acquire(LoopId{0}, false, [](const IntEntry&, EntryWord) { return Match::take; });
  }
  void search_if_wanted() {
    if (wanted_.load(std::memory_order_seq_cst) != 0) met_ |= search().taken;
  }
  pool::Atomic<int> wanted_{0};
  bool met_ = false, other_has_it_ = false;
};

// One of an entry's users closes it while another uses it: the last user destroys it, once.
class CloseUnderAnother : public Bench {
 public:
  CloseUnderAnother() : Bench(2, 1, 2) { take(0), take(0); }
  void run(unsigned thread) override {
    if (thread == 0) {
      --entry_.value;
      return close(entry_);
    }
    give(entry_);
  }
  std::string verdict() override {
    if (ended_ != 1) return "ended " + std::to_string(ended_) + " times";
    return pool_.in_use() == 0 ? wrong_ : "the place is still counted";
  }

 private:
  IntEntry& entry_ = enabled(0);
};

class Terminate : public Bench {
 public:
  Terminate() : Bench(3, 3) {  // room for one more reservation
    enabled(1);
    reserved_ = pool_.reserve();
  }
  void run(unsigned thread) override {
    switch (thread) {
      case 0:
        return pool_.terminate([this](IntEntry& entry) { end(entry); });
      case 1:
        if (IntEntry* entry = take(1)) give(*entry);
        if (IntEntry* entry = pool_.reserve()) pool_.enable(*entry, 1, false) ? void() : end(*entry);
        return;
      default:
        if (!pool_.enable(*reserved_, 2, true)) return end(*reserved_);
        ++reserved_->value;
        give(*reserved_);
    }
  }
  std::string verdict() override {
    if (pool_.in_use() != 0) return "something survived: " + std::to_string(pool_.in_use());
    return pool_.has_idle() ? "something rests in a terminated pool" : wrong_;
  }

 private:
  IntEntry* reserved_ = nullptr;
};

// reserve() and close() of the same slot, whose number is reused: the cap is exact throughout.
class PlaceIsReused : public Bench {
 public:
  PlaceIsReused() : Bench(3, 2) {
    enabled(0);
    held_ = take(0);
  }
  void run(unsigned thread) override {
    if (thread == 0) {
      --held_->value;
      return close(*held_);
    }
    IntEntry* entry = pool_.reserve();
    if (entry == nullptr) return;
    if (++inside_ > 2) wrong_ = "the cap was passed";
    if (!pool_.enable(*entry, static_cast<LoopId>(thread), true)) wrong_ = "a reservation was lost";
    ++entry->value;
    give(*entry);
  }
  std::string verdict() override {
    if (pool_.in_use() > 2) return "the cap was passed";
    return findable(pool_.in_use());
  }

 private:
  IntEntry* held_ = nullptr;
  int inside_ = 0;
};

// The cap falls while two threads reserve: the number in use when cap() returned does not grow.
class CapFalls : public Bench {
 public:
  CapFalls() : Bench(3, 2) {}
  void run(unsigned thread) override {
    if (thread != 0) return static_cast<void>(pool_.reserve());
    pool_.cap(1);
    seen_ = std::max(pool_.in_use(), 1U);
  }
  std::string verdict() override { return pool_.in_use() > seen_ ? "reserved above a cap that had fallen" : wrong_; }

 private:
  std::uint32_t seen_ = 0;
};

// Two threads find every entry taken and append a block, or a part of one: once is enough.
template <unsigned kTaken>
class TwoGrow : public Bench {
 public:
  TwoGrow() : Bench(2, kTaken + 2) {
    for (unsigned n = 0; n < kTaken; ++n) enabled(0);
  }
  void run(unsigned thread) override { reserved_[thread] = pool_.reserve(); }
  std::string verdict() override {
    unsigned places = 0;
    pool_.for_each([&](IntEntry&) { ++places; });
    if (reserved_[0] == nullptr || reserved_[1] == nullptr || reserved_[0] == reserved_[1])
      return "not two places for two";
    return places == kTaken + kGrowth ? wrong_ : "places: " + std::to_string(places);
  }

 private:
  static constexpr unsigned kGrowth = kTaken < pool::kBlockEntries ? pool::kPartEntries : pool::kBlockEntries;
  IntEntry* reserved_[2] = {};
};

// A thread visits the entries of a block while another adds some: those that it visits are complete.
class VisitMeetsAnExtendedBlock : public Bench {
 public:
  VisitMeetsAnExtendedBlock() : Bench(2, pool::kPartEntries + 1) {
    for (unsigned n = 0; n < pool::kPartEntries; ++n) enabled(0);
  }
  void run(unsigned thread) override {
    if (thread == 0) return static_cast<void>(pool_.reserve());
    pool_.for_each([&](const IntEntry& entry) {
      if (EntryWord(entry.word.load(std::memory_order_relaxed)).generation() == 0) wrong_ = "an entry that is not made";
    });
  }
  std::string verdict() override { return wrong_; }
};

// Under a cap of one block a place is freed while another thread reserves: the block is enough.
class FullBlockIsReused : public Bench {
 public:
  FullBlockIsReused() : Bench(2, 64) {
    for (int n = 0; n < 63; ++n) static_cast<void>(pool_.reserve());
    enabled(0);
    held_ = take(0);
  }
  void run(unsigned thread) override {
    if (thread == 1) return static_cast<void>(pool_.reserve());
    --held_->value;
    close(*held_);
  }
  std::string verdict() override { return pool_.blocks() == 1 ? wrong_ : "a block more than the cap needs"; }

 private:
  IntEntry* held_ = nullptr;
};

// Acquirers over all entries of every loop: entries change loops during the searches and none is lost.
template <pool::Strategy kStrategy>
class TakersOfAny : public Bench {
 public:
  TakersOfAny() : Bench(3, 2) { enabled(0), enabled(1); }
  void run(unsigned thread) override {
    const auto found = pool_.acquire({static_cast<LoopId>(thread), true, kStrategy},
                                     [](const IntEntry&, EntryWord) { return Match::take; });
    if (!found.taken) return;
    if (++found.entry->value > 1) wrong_ = "too many users on one";
    give(*found.entry);
  }
  std::string verdict() override { return findable(2); }
};

// A search that continues after its last slot reads that entry's word alone: the bit may not be set yet.
class TakersInTurn : public Bench {
 public:
  TakersInTurn() : Bench(2, 2) { enabled(0), enabled(1); }
  void run(unsigned thread) override {
    for (int n = 0; n < 3; ++n) {
      const auto found = pool_.acquire({static_cast<LoopId>(thread), true, pool::Strategy::round_robin},
                                       [](const IntEntry&, EntryWord) { return Match::take; });
      if (!found.taken) continue;
      if (++found.entry->value > 1) wrong_ = "too many users on one";
      give(*found.entry);
    }
  }
  std::string verdict() override { return findable(2); }
};

// An object that its hook rejects, one that it accepts, and the end: each hook runs once, each object is destroyed
// once.
class HooksAndTheEnd : public Scenario {
 public:
  HooksAndTheEnd() {
    for (int value : {kBad, kGood}) things_.insert(value);
  }
  unsigned threads() const override { return 3; }
  void run(unsigned thread) override {
    if (thread == 2) return things_.terminate();
    const auto loan = things_.acquire({static_cast<LoopId>(thread)});
    if (loan && *loan != kGood) wrong_ = "what was refused was lent";
  }
  std::string verdict() override {
    if (things_.in_use() != 0) return "something survived";
    if (ended_ != 2) return "ended " + std::to_string(ended_) + " times";
    if (refused_ > 1) return "refused twice";
    return ready_ == anonymous_ ? wrong_ : "made ready and not anonymous";
  }

 private:
  static constexpr int kBad = 1, kGood = 2;
  struct Hooks {
    HooksAndTheEnd* of;
    bool on_acquire(int& value) const {
      if (value == kBad) ++of->refused_;
      if (value == kGood) ++of->ready_;
      return value == kGood;
    }
    void on_release(int&) const { ++of->anonymous_; }
    void ended(std::uint32_t) const { ++of->ended_; }
  };
  int ready_ = 0, anonymous_ = 0, refused_ = 0, ended_ = 0;
  std::string wrong_;
  pool::ObjectPool<int, Hooks> things_{{.cap = 2, .loops = 3}, {this}};
};

}  // namespace

std::vector<Named> pool_scenarios() {
  return {named<TwoTakersOneEntry>("three takers of one entry"),
          named<SharedEntry>("two users of a shared entry"),
          named<SharedToItsLimit>("a shared entry taken to its limit while one leaves"),
          named<CloseUnderAnother>("a shared thing closed under another"),
          named<Terminate>("terminate against enable and reserve"),
          named<PlaceIsReused>("a place closed while two reserve"),
          named<CapFalls>("the cap falls while two reserve"),
          named<TwoGrow<pool::kBlockEntries>>("two append a block"),
          named<TwoGrow<pool::kPartEntries>>("two extend a block"),
          named<VisitMeetsAnExtendedBlock>("a visit meets a block that is extended"),
          named<FullBlockIsReused>("a place of a full block is freed while another reserves"),
          named<TakersOfAny<pool::Strategy::round_robin>>("three takers in turn over all entries"),
          named<TakersOfAny<pool::Strategy::random>>("three takers at random over all entries"),
          named<TakersInTurn>("two takers who go round all entries"),
          named<BorrowerMeetsAnEmptiedBlock>("a borrower meets a block that empties"),
          named<HooksAndTheEnd>("hooks, a refusal and the end")};
}

}  // namespace carpool::explore
