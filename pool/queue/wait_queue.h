// WaitQueue: waiting borrowers in order of their turns: first come, first served among equals, fair shares among
// clients and classes. Retries are kept apart and come first: they accept only a new connection, the others any.
//
// There is one ordered tree per class and protocol mask, so the first borrower that accepts a connection is the first
// of a few heads. Insertion, removal and search take O(log n) steps and allocate nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/intrusive_tree.h"
#include "pool/core/audit_report.h"
#include "pool/queue/borrower.h"
#include "pool/queue/class_quota.h"
#include "pool/queue/turn_order.h"

namespace carpool::pool {

class WaitQueue {
 public:
  std::uint32_t size() const { return retries_size_ + others_size_; }
  std::uint32_t retries() const { return retries_size_; }
  std::uint32_t others() const { return others_size_; }
  bool empty() const { return size() == 0; }
  // Returns true if a borrower waits for a protocol that is neither held nor being dialed.
  bool lacks_kind(Protocol kind, const std::array<std::uint32_t, kProtocols>& held, std::uint32_t dials) const {
    const ProtocolMask only = kind == Protocol::h1 ? ProtocolMask::h1_only : ProtocolMask::h2_only;
    return wanting(only) != 0 && dials == 0 && held[static_cast<std::size_t>(kind)] == 0;
  }
  // Returns the number of waiters that are not retries, by class.
  const std::array<std::uint32_t, ClassQuota::kMaxClasses>& by_class() const { return by_class_; }
  std::uint32_t wanting(ProtocolMask kind) const { return by_kind_[number(kind)]; }
  static bool in(const Borrower& borrower) {
    return static_cast<const TreeHook<WaitersTag, Duration>&>(borrower).linked();
  }

  // Enqueues a new borrower by its turn, and a borrower that was removed by a grant at its former position.
  void push(Borrower& borrower) {
    if (borrower.virtual_finish_time_ == 0) borrower.virtual_finish_time_ = turn_of(borrower);
    queue_of(borrower).insert(borrower);
    if (!borrower.want_.new_connection_only) clients_.insert(borrower);
    ++size_of(borrower);
    ++by_kind_[number(borrower.want_.kind)];
    ++class_of(borrower);
  }
  // Virtual time advances with each borrower that is served: the head may wait for the other protocol or for a share of
  // its class, and clients behind it take turns nevertheless. Retries do not advance it: any number of them may pass
  // the same head.
  void remove_served(Borrower& borrower) {
    if (!borrower.want_.new_connection_only) served_ = std::max(served_, borrower.virtual_finish_time_);
    unlink(borrower);
  }
  // Removes a borrower that is not served. Virtual time advances if it was the head, not if a later waiter cancels.
  void remove(Borrower& borrower) {
    const bool head = !borrower.want_.new_connection_only && first_of(false) == &borrower;
    if (head) served_ = std::max(served_, borrower.virtual_finish_time_);
    unlink(borrower);
  }

  // Returns the next borrower, or null if the queue is empty.
  Borrower* first() const { return first_of(retries_size_ != 0); }
  // Returns the first retry that a new connection of `kind` would serve.
  Borrower* first_retry(Protocol kind) const {
    return least(kRetries, 1, [&](ProtocolMask kinds, const Queue& queue) {
      return accepts(kinds, kind) ? queue.first() : nullptr;
    });
  }
  // Returns the first borrower that accepts `kind` and whose class has a share left; takes that share.
  Borrower* first_other(Protocol kind, ClassQuota& shares) const {
    unsigned classes = ClassQuota::kMaxClasses;  // a class without a share blocks the classes below it
    for (;;) {
      Borrower* at = least(kOthers, classes, [&](ProtocolMask kinds, const Queue& queue) {
        return accepts(kinds, kind) ? queue.first() : nullptr;
      });
      if (at == nullptr || shares.acquire(share_of(at->want_))) return at;
      classes = share_of(at->want_);
    }
  }
  // Returns the first of the `classes` highest classes that accepts an idle time longer than refused[its protocol
  // mask].
  Borrower* first_willing(const std::array<Duration, 3>& refused, unsigned classes) const {
    return least(kOthers, classes, [&](ProtocolMask kinds, const Queue& queue) {
      const Duration longer = refused[number(kinds)];
      return queue.first_fit([&](Duration max_idle) { return max_idle > longer; });
    });
  }
  Borrower* first_wanting(ProtocolMask kind) const {
    const auto of_kind = [&](ProtocolMask kinds, const Queue& queue) {
      return kinds == kind ? queue.first() : nullptr;
    };
    if (wanting(kind) == 0) return nullptr;
    Borrower* retry = least(kRetries, 1, of_kind);
    return retry != nullptr ? retry : least(kOthers, ClassQuota::kMaxClasses, of_kind);
  }
  // Returns the longest idle time of a connection of `kind` that any waiter except retries accepts; Duration::min() if
  // none waits.
  Duration longest_accepted_idle(Protocol kind) const {
    Duration most = Duration::min();
    for (std::size_t n = kOthers * kKindsWanted; n < queues_.size(); ++n) {
      const auto kinds = static_cast<ProtocolMask>(n % kKindsWanted);
      if (!queues_[n].empty() && accepts(kinds, kind)) most = std::max(most, queues_[n].summary());
    }
    return most;
  }
  // Returns the time when the next borrowers joined this queue, and the time when they asked.
  Instant waiting_since(Instant now) const { return earliest(&Borrower::since_, now); }
  Instant asking_since(Instant now) const { return earliest(&Borrower::asked_, now); }

  // Returns the first waiter, retries excluded, for which visit(waiter) returns true, or null.
  template <class Visit>
  const Borrower* find_other(Visit&& visit) const {
    for (std::size_t n = kOthers * kKindsWanted; n < queues_.size(); ++n) {
      for (Borrower* at = queues_[n].first(); at != nullptr; at = queues_[n].next(*at)) {
        if (visit(*at)) return at;
      }
    }
    return nullptr;
  }
  // Recounts. The lock of the queue must be held.
  void audit(AuditReport& report) const;

 private:
  struct Recount;
  using Queue = Tree<Borrower, WaitersTag, TurnOrder>;
  static constexpr std::size_t kKindsWanted = 3;
  // the first row of each; a row has one queue per protocol mask
  static constexpr std::size_t kRetries = 0, kOthers = 1;
  static constexpr std::size_t number(ProtocolMask kind) { return static_cast<std::size_t>(kind); }

  // Self-clocked fair queueing (Golestani 1994): a request starts when the client's previous one finishes, or now, and
  // takes as long as its class weight. Equal requests are served first come, first served.
  static constexpr unsigned kMaxClasses = 8;
  static std::uint64_t class_weight(const Borrower& borrower) {
    return std::uint64_t{1} << (2 * std::min<unsigned>(borrower.want_.priority_class, kMaxClasses - 1));
  }
  std::uint64_t turn_of(const Borrower& borrower) {
    const Borrower* former = borrower.want_.new_connection_only ? nullptr : latest(borrower.want_);
    return (former == nullptr ? served_ : std::max(served_, former->virtual_finish_time_)) + class_weight(borrower);
  }
  // Returns the last request of this client and class in the queue, or null.
  const Borrower* latest(const BorrowRequest& want) const {
    const Borrower* last = clients_.last_not([&](const Borrower& one) { return ClientOrder::beyond(one, want); });
    return last != nullptr && ClientOrder::same(*last, want) ? last : nullptr;
  }

  Instant earliest(Instant Borrower::*time, Instant now) const {
    for (const bool retries : {true, false}) {
      if (const Borrower* first = first_of(retries); first != nullptr) now = std::min(now, first->*time);
    }
    return now;
  }

  void unlink(Borrower& borrower) {
    queue_of(borrower).erase(borrower);
    if (!borrower.want_.new_connection_only) clients_.erase(borrower);
    --size_of(borrower);
    --by_kind_[number(borrower.want_.kind)];
    --class_of(borrower);
  }

  Queue& queue_of(const Borrower& borrower) {
    const std::size_t row = borrower.want_.new_connection_only ? kRetries : kOthers + share_of(borrower.want_);
    return queues_[row * kKindsWanted + number(borrower.want_.kind)];
  }
  Borrower* first_of(bool retries) const {
    return least(retries ? kRetries : kOthers, retries ? 1 : ClassQuota::kMaxClasses,
                 [](ProtocolMask, const Queue& queue) { return queue.first(); });
  }
  // Returns the first in turn of those that `pick` returns for each queue of the rows.
  template <class Pick>
  Borrower* least(std::size_t row, unsigned rows, Pick&& pick) const {
    Borrower* first = nullptr;
    for (std::size_t n = row * kKindsWanted; n < (row + rows) * kKindsWanted; ++n) {
      if (queues_[n].empty()) continue;
      Borrower* one = pick(static_cast<ProtocolMask>(n % kKindsWanted), queues_[n]);
      if (one != nullptr && (first == nullptr || TurnOrder::before(*one, *first))) first = one;
    }
    return first;
  }
  std::uint32_t& class_of(const Borrower& borrower) {
    return borrower.want_.new_connection_only ? retry_class_ : by_class_[share_of(borrower.want_)];
  }
  std::uint32_t& size_of(const Borrower& borrower) {
    return borrower.want_.new_connection_only ? retries_size_ : others_size_;
  }

  std::array<Queue, (kOthers + ClassQuota::kMaxClasses) * kKindsWanted> queues_;
  Tree<Borrower, ClientsTag, ClientOrder> clients_;
  std::uint32_t retries_size_ = 0, others_size_ = 0;
  std::uint64_t served_ = 0;                           // the virtual finish time of the last borrower served
  std::array<std::uint32_t, kKindsWanted> by_kind_{};  // by ProtocolMask
  std::array<std::uint32_t, ClassQuota::kMaxClasses> by_class_{};
  std::uint32_t retry_class_ = 0;  // retries, which have no share
};

}  // namespace carpool::pool
