// Line: who waits, in the order of tickets. Replays stand apart and in front: they take nothing but a new connection,
// the others take what comes first. Guarded by its destination's mutex.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/intrusive.h"
#include "pool/waiters.h"

namespace carpool::pool {

class Line {
 public:
  std::uint32_t size() const { return replays_size_ + others_size_; }
  std::uint32_t replays() const { return replays_size_; }
  std::uint32_t others() const { return others_size_; }
  bool empty() const { return size() == 0; }
  static bool in(const Borrower& borrower) { return hook(borrower).linked(); }

  // A new one goes to the end of its part; one that comes back, with its old ticket, to where it was.
  void join(Borrower& borrower) {
    List<Borrower, WaitersTag>& part = part_of(borrower);
    Borrower* before = nullptr;  // the last one with a smaller ticket
    if (part.last() != nullptr && part.last()->ticket_ < borrower.ticket_) {
      before = part.last();
    } else {
      for (Borrower* at = part.next(nullptr); at != nullptr && at->ticket_ < borrower.ticket_; at = part.next(at))
        before = at;
    }
    part.insert_after(before, borrower);
    ++size_of(borrower);
  }
  void leave(Borrower& borrower) {
    hook(borrower).unlink();
    --size_of(borrower);
  }

  // The first one whom a connection that never served would go to; the first one for any connection; null: nobody.
  Borrower* first() { return replays_size_ != 0 ? &replays_.front() : first_other(); }
  Borrower* first_other() { return others_size_ != 0 ? &others_.front() : nullptr; }
  Borrower* next_other(Borrower* borrower) { return others_.next(borrower); }
  // The longest rest that anyone but replays would accept; none waits: less than any.
  Duration most_patient() {
    Duration most = Duration::min();
    for (Borrower* at = first_other(); at != nullptr && most != Duration::max(); at = next_other(at)) {
      most = std::max(most, at->want_.max_idle);
    }
    return most;
  }
  Instant waiting_since(Instant now) const {
    if (replays_size_ != 0) now = std::min(now, replays_.front().since_);
    if (others_size_ != 0) now = std::min(now, others_.front().since_);
    return now;
  }

 private:
  static ListHook<WaitersTag>& hook(Borrower& borrower) { return borrower; }
  static const ListHook<WaitersTag>& hook(const Borrower& borrower) { return borrower; }
  List<Borrower, WaitersTag>& part_of(const Borrower& borrower) { return borrower.want_.fresh ? replays_ : others_; }
  std::uint32_t& size_of(const Borrower& borrower) { return borrower.want_.fresh ? replays_size_ : others_size_; }

  List<Borrower, WaitersTag> replays_, others_;
  std::uint32_t replays_size_ = 0, others_size_ = 0;
};

}  // namespace carpool::pool
