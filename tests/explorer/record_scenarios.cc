// Scenarios of data that is read without a lock while it changes: the borrows and restores of the ledger, the history
// of borrows, the index of entries, a destination that is reclaimed, and an entry that is freed.
#include <string>
#include <vector>

#include "pool/core/entry_index.h"
#include "pool/core/pool.h"
#include "pool/policy/borrow_history.h"
#include "tests/explorer/destination_scenario.h"
#include "tests/explorer/scenarios.h"

namespace carpool::explore {
namespace {

using std::chrono::microseconds;

// A scrape never counts more restores than borrows, whichever loop the connection served last.
class ScrapeAgainstLeases final : public DestinationScenario {
 public:
  ScrapeAgainstLeases() : DestinationScenario(3, cap(1)) {}
  void run(unsigned thread) override {
    if (thread == 0) return holder_.release();
    if (thread == 1) {
      if (asking_.borrow(destination()) == State::leased) asking_.release();
      return pump();
    }
    const pool::Destination::Snapshot now = destination().snapshot(world.now);
    if (now.restores > now.borrows) world.wrong = "more restores than borrows";
  }

 private:
  TestBorrower& holder_ = leased(0);
  TestBorrower& asking_ = borrower_on(1);
};

// The last record of the ring is overwritten while it is read: the reader sees the old one, the new one, or none.
class HistoryIsRead final : public Scenario {
 public:
  HistoryIsRead() {
    for (std::size_t n = 0; n + 1 < 2 * pool::BorrowHistory::kStep; ++n) note(n);
  }
  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    if (thread == 0) return note(2 * pool::BorrowHistory::kStep);
    std::vector<pool::BorrowRecord> records;
    history_.read(records);
    for (const pool::BorrowRecord& one : records) {
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(one.arrived.time_since_epoch()).count();
      if (one.waited != microseconds(seconds) || one.held != microseconds(seconds)) wrong_ = "a record is a mixture";
    }
  }
  std::string verdict() override { return wrong_; }

 private:
  // Once a minute, so that the ring does not grow.
  void note(std::size_t n) {
    const auto seconds = static_cast<std::int64_t>(60 * (n + 1));
    history_.note(Instant(std::chrono::seconds(seconds)), microseconds(seconds), microseconds(seconds));
  }
  pool::BorrowHistory history_;
  std::string wrong_;
};

// A history's first part is complete when a reader finds it.
class HistoryBegins final : public Scenario {
 public:
  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    if (thread == 0) return history_.note(Instant(std::chrono::seconds(60)), microseconds(1), microseconds(1));
    std::vector<pool::BorrowRecord> records;
    history_.read(records);
    if (records.size() > 1) wrong_ = "a record that was not written";
  }
  std::string verdict() override { return wrong_; }

 private:
  pool::BorrowHistory history_;
  std::string wrong_;
};

// A block that is in the index is complete.
class IndexFinds final : public Scenario {
 public:
  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    if (thread == 0) {
      block_.content.write();
      return pool::EntryIndex::process().publish(place_, block_);
    }
    pool::EntryBase* entry = pool::EntryIndex::process().find(place_.first_index);
    if (entry != nullptr) block_.content.read();
  }
  std::string verdict() override {
    pool::EntryIndex::process().withdraw(place_.first_index);
    return "";
  }

 private:
  class Numbered final : public pool::BlockBase {
   public:
    pool::EntryBase* find(unsigned place) override { return place == 0 ? &entry_ : nullptr; }
    Plain content;

   private:
    pool::EntryBase entry_;
  };
  pool::EntryIndex::Place place_ = pool::EntryIndex::process().reserve();
  Numbered block_;
};

// A thread frees a place, then looks for a borrower; another notes that it waits, then looks for a place.
class BorrowerMeetsAFreedPlace final : public Scenario {
 public:
  BorrowerMeetsAFreedPlace() { pool_.enable(held_, 0, true); }
  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    if (thread == 0) {
      if (pool_.close(held_)) pool_.vacate(held_);
      met_ |= wanted_.load(std::memory_order_seq_cst) != 0;
    } else {
      wanted_.store(1, std::memory_order_seq_cst);
      met_ |= pool_.reserve() != nullptr;
    }
  }
  std::string verdict() override { return met_ ? "" : "a place that was freed is not found by who waits for it"; }

 private:
  pool::Pool<int> pool_{1, 2};
  pool::Entry<int>& held_ = *pool_.reserve();
  pool::Atomic<int> wanted_{0};
  bool met_ = false;
};

}  // namespace

std::vector<Named> record_scenarios() {
  return {
      named<ScrapeAgainstLeases>("a scrape against a release and a borrow"),
      named<HistoryIsRead>("the history is read while a record is replaced"),
      named<HistoryBegins>("the history is read while it begins"),
      named<IndexFinds>("the index finds a block that is published"),
      named<BorrowerMeetsAFreedPlace>("a borrower meets a place that is freed"),
  };
}

}  // namespace carpool::explore
