// WaitQueue: who waits, in the order of turns: first come first served for equals, clients and classes in fair shares.
// Replays stand apart and in front: they take nothing but a new connection, the others take what comes first. Guarded
// by its destination's mutex.
//
// There is one ordered tree for each class and kind, so that the first borrower that fits a connection is the first of
// a few heads. Joining, leaving and finding take O(log n) steps and no memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/intrusive_tree.h"
#include "pool/queue/borrower.h"
#include "pool/queue/class_quota.h"
#include "pool/queue/turn_order.h"

namespace carpool::pool {

class WaitQueue {
 public:
  std::uint32_t size() const { return replays_size_ + others_size_; }
  std::uint32_t replays() const { return replays_size_; }
  std::uint32_t others() const { return others_size_; }
  bool empty() const { return size() == 0; }
  // Somebody waits for a kind that is neither held nor dialed.
  bool lacks_kind(Protocol kind, const std::array<std::uint32_t, kProtocols>& held, std::uint32_t dials) const {
    const ProtocolMask only = kind == Protocol::h1 ? ProtocolMask::h1_only : ProtocolMask::h2_only;
    return wanting(only) != 0 && dials == 0 && held[static_cast<std::size_t>(kind)] == 0;
  }
  // Of those that are no replays, by class.
  const std::array<std::uint32_t, ClassQuota::kMostClasses>& by_class() const { return by_class_; }
  std::uint32_t wanting(ProtocolMask kind) const { return by_kind_[number(kind)]; }
  static bool in(const Borrower& borrower) {
    return static_cast<const TreeHook<WaitersTag, Duration>&>(borrower).linked();
  }

  // A new one goes behind those whose turn comes before its own; one that comes back, to where it was.
  void join(Borrower& borrower) {
    if (borrower.virtual_finish_time_ == 0) borrower.virtual_finish_time_ = turn_of(borrower);
    queue_of(borrower).insert(borrower);
    if (!borrower.want_.new_connection_only) clients_.insert(borrower);
    ++size_of(borrower);
    ++by_kind_[number(borrower.want_.kind)];
    ++class_of(borrower);
  }
  void leave(Borrower& borrower) {
    // Virtual time advances when the head is removed, not when a later waiter gives up.
    if (first_of(borrower.want_.new_connection_only) == &borrower)
      served_ = std::max(served_, borrower.virtual_finish_time_);
    queue_of(borrower).erase(borrower);
    if (!borrower.want_.new_connection_only) clients_.erase(borrower);
    --size_of(borrower);
    --by_kind_[number(borrower.want_.kind)];
    --class_of(borrower);
  }

  // Returns who is next; null: nobody.
  Borrower* first() const { return first_of(replays_size_ != 0); }
  // The first replay that a new connection of `kind` would serve.
  Borrower* first_replay(Protocol kind) const {
    return least(kReplays, 1, [&](ProtocolMask kinds, const Queue& queue) {
      return accepts(kinds, kind) ? queue.first() : nullptr;
    });
  }
  // Whom any connection of `kind` would go to: the first one for whom there is a share, which is taken.
  Borrower* first_other(Protocol kind, ClassQuota& shares) const {
    unsigned classes = ClassQuota::kMostClasses;  // a class without a share holds back those below it
    for (;;) {
      Borrower* at = least(kOthers, classes, [&](ProtocolMask kinds, const Queue& queue) {
        return accepts(kinds, kind) ? queue.first() : nullptr;
      });
      if (at == nullptr || shares.acquire(share_of(at->want_))) return at;
      classes = share_of(at->want_);
    }
  }
  // The first of the `classes` highest ones that accepts a longer rest than refused[its kind].
  Borrower* first_willing(const std::array<Duration, 3>& refused, unsigned classes) const {
    return least(kOthers, classes, [&](ProtocolMask kinds, const Queue& queue) {
      const Duration longer = refused[number(kinds)];
      return queue.first_fit([&](Duration class_weight) { return class_weight > longer; });
    });
  }
  Borrower* first_wanting(ProtocolMask kind) const {
    const auto of_kind = [&](ProtocolMask kinds, const Queue& queue) {
      return kinds == kind ? queue.first() : nullptr;
    };
    if (wanting(kind) == 0) return nullptr;
    Borrower* replay = least(kReplays, 1, of_kind);
    return replay != nullptr ? replay : least(kOthers, ClassQuota::kMostClasses, of_kind);
  }
  // The longest rest of a connection of `kind` that anyone but replays would accept; none waits: less than any.
  Duration most_patient(Protocol kind) const {
    Duration most = Duration::min();
    for (std::size_t n = kOthers * kKindsWanted; n < queues_.size(); ++n) {
      const auto kinds = static_cast<ProtocolMask>(n % kKindsWanted);
      if (!queues_[n].empty() && accepts(kinds, kind)) most = std::max(most, queues_[n].summary());
    }
    return most;
  }
  Instant waiting_since(Instant now) const {
    if (replays_size_ != 0) now = std::min(now, first_of(true)->since_);
    if (others_size_ != 0) now = std::min(now, first_of(false)->since_);
    return now;
  }

 private:
  using Queue = Tree<Borrower, WaitersTag, TurnOrder>;
  static constexpr std::size_t kKindsWanted = 3;
  static constexpr std::size_t kReplays = 0, kOthers = 1;  // the first row of each; a row has a queue for each kind
  static constexpr std::size_t number(ProtocolMask kind) { return static_cast<std::size_t>(kind); }

  // Self-clocked fair queueing (Golestani 1994): a wish starts when the client's former one ends, or now, and takes as
  // long as its class has patience. Who is alone, or the same as all others, is served first come first served.
  static constexpr unsigned kMostClasses = 8;
  static std::uint64_t class_weight(const Borrower& borrower) {
    return std::uint64_t{1} << (2 * std::min<unsigned>(borrower.want_.priority_class, kMostClasses - 1));
  }
  std::uint64_t turn_of(const Borrower& borrower) {
    const Borrower* former = borrower.want_.new_connection_only ? nullptr : latest(borrower.want_);
    return (former == nullptr ? served_ : std::max(served_, former->virtual_finish_time_)) + class_weight(borrower);
  }
  // The wish of this client and class whose turn comes last; null: it has none in line.
  const Borrower* latest(const BorrowRequest& want) const {
    const Borrower* last = clients_.last_not([&](const Borrower& one) { return ClientOrder::beyond(one, want); });
    return last != nullptr && ClientOrder::same(*last, want) ? last : nullptr;
  }

  Queue& queue_of(const Borrower& borrower) {
    const std::size_t row = borrower.want_.new_connection_only ? kReplays : kOthers + share_of(borrower.want_);
    return queues_[row * kKindsWanted + number(borrower.want_.kind)];
  }
  Borrower* first_of(bool replays) const {
    return least(replays ? kReplays : kOthers, replays ? 1 : ClassQuota::kMostClasses,
                 [](ProtocolMask, const Queue& queue) { return queue.first(); });
  }
  // Of what `pick` names in each queue of some rows, whose turn is first.
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
    return borrower.want_.new_connection_only ? fresh_ : by_class_[share_of(borrower.want_)];
  }
  std::uint32_t& size_of(const Borrower& borrower) {
    return borrower.want_.new_connection_only ? replays_size_ : others_size_;
  }

  std::array<Queue, (kOthers + ClassQuota::kMostClasses) * kKindsWanted> queues_;
  Tree<Borrower, ClientsTag, ClientOrder> clients_;
  std::uint32_t replays_size_ = 0, others_size_ = 0;
  std::uint64_t served_ = 0;                           // the turn of the latest one who was served
  std::array<std::uint32_t, kKindsWanted> by_kind_{};  // by ProtocolMask
  std::array<std::uint32_t, ClassQuota::kMostClasses> by_class_{};
  std::uint32_t fresh_ = 0;  // replays, which have no share
};

}  // namespace carpool::pool
