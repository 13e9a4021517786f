// Line: who waits, in the order of turns: first come first served for equals, clients and classes in fair shares.
// Replays stand apart and in front: they take nothing but a new connection, the others take what comes first. Guarded
// by its destination's mutex.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "base/intrusive.h"
#include "pool/search.h"
#include "pool/shares.h"
#include "pool/waiters.h"

namespace carpool::pool {

// The class whose share a wish takes: none for a replay, which had one before.
inline std::uint8_t share_of(const Want& want) {
  return want.fresh ? std::uint8_t{0} : std::min(want.priority_class, std::uint8_t{Shares::kMostClasses - 1});
}

// The wishes in line by client and class, so that a new one finds the client's former one without a walk.
class Clients {
 public:
  // When somebody has to wait for the first time. False: there is no memory for it.
  bool ready() {
    try {
      if (!chains_) chains_ = std::make_unique<Chains>();
    } catch (const std::bad_alloc&) {
      return false;
    }
    return true;
  }
  void note(Borrower& borrower) {
    Chain& chain = of(borrower.want_);
    // One that comes back is not the client's latest.
    if (const Borrower* newest = latest(borrower.want_); newest != nullptr && newest->turn_ > borrower.turn_) {
      chain.push_back(borrower);
    } else {
      chain.push_front(borrower);
    }
  }
  static void forget(Borrower& borrower) { static_cast<ListHook<ClientsTag>&>(borrower).unlink(); }
  const Borrower* latest(const Want& want) {
    if (!chains_) return nullptr;
    Chain& chain = of(want);
    Borrower* at = chain.next(nullptr);
    while (at != nullptr && (at->want_.client != want.client || at->want_.priority_class != want.priority_class)) {
      at = chain.next(at);
    }
    return at;
  }

 private:
  using Chain = List<Borrower, ClientsTag>;
  using Chains = std::array<Chain, 64>;
  Chain& of(const Want& want) { return (*chains_)[scatter(want.client) % chains_->size()]; }
  std::unique_ptr<Chains> chains_;
};

class Line {
 public:
  std::uint32_t size() const { return replays_size_ + others_size_; }
  std::uint32_t replays() const { return replays_size_; }
  std::uint32_t others() const { return others_size_; }
  bool empty() const { return size() == 0; }
  // Somebody waits for a kind that is neither held nor dialed.
  bool lacks_kind(Kind kind, const std::array<std::uint32_t, kKinds>& held, std::uint32_t dials) const {
    const Kinds only = kind == Kind::h1 ? Kinds::h1_only : Kinds::h2_only;
    return wanting(only) != 0 && dials == 0 && held[static_cast<std::size_t>(kind)] == 0;
  }
  // Of those that are no replays, by class.
  const std::array<std::uint32_t, Shares::kMostClasses>& by_class() const { return by_class_; }
  std::uint32_t wanting(Kinds kind) const { return by_kind_[static_cast<std::size_t>(kind)]; }
  static bool in(const Borrower& borrower) { return hook(borrower).linked(); }

  // Before one joins. False: no memory.
  bool ready() { return clients_.ready(); }
  // A new one goes behind those whose turn comes before its own; one that comes back, to where it was.
  void join(Borrower& borrower) {
    List<Borrower, WaitersTag>& part = part_of(borrower);
    if (borrower.turn_ == 0) borrower.turn_ = turn_of(borrower);
    Borrower* before = part.previous(nullptr);
    while (before != nullptr && later(*before, borrower)) before = part.previous(before);
    part.insert_after(before, borrower);
    if (!borrower.want_.fresh) clients_.note(borrower);
    ++size_of(borrower);
    ++kind_of(borrower);
    ++class_of(borrower);
  }
  void leave(Borrower& borrower) {
    // Time goes on with who is served, not with who gives up further behind.
    if (part_of(borrower).next(nullptr) == &borrower) {
      served_ = std::max(served_, borrower.turn_);
    }
    hook(borrower).unlink();
    clients_.forget(borrower);
    --size_of(borrower);
    --kind_of(borrower);
    --class_of(borrower);
  }

  // Who is next; null: nobody.
  Borrower* first() { return replays_size_ != 0 ? &replays_.front() : others_.next(nullptr); }
  Borrower* next_replay(Borrower* borrower) { return replays_.next(borrower); }  // null: the first
  Borrower* next_other(Borrower* borrower) { return others_.next(borrower); }
  // The first replay that a new connection of `kind` would serve.
  Borrower* first_replay(Kind kind) { return accepting(replays_, kind); }
  // Whom any connection of `kind` would go to: the first one for whom there is a share, which is taken.
  Borrower* first_other(Kind kind, Shares& shares) {
    unsigned held_back = Shares::kMostClasses;  // that class and those below it
    for (Borrower* at = others_.next(nullptr); at != nullptr && held_back != 0; at = others_.next(at)) {
      const std::uint8_t share = share_of(at->want_);
      if (share >= held_back || !accepts(at->want_.kind, kind)) continue;
      if (shares.take(share)) return at;
      held_back = share;
    }
    return nullptr;
  }
  Borrower* first_wanting(Kinds kind) {
    if (wanting(kind) == 0) return nullptr;
    for (List<Borrower, WaitersTag>* part : {&replays_, &others_}) {
      for (Borrower* at = part->next(nullptr); at != nullptr; at = part->next(at)) {
        if (at->want_.kind == kind) return at;
      }
    }
    return nullptr;
  }
  // The longest rest of a connection of `kind` that anyone but replays would accept; none waits: less than any.
  Duration most_patient(Kind kind) {
    Duration most = Duration::min();
    for (Borrower* at = next_other(nullptr); at != nullptr && most != Duration::max(); at = next_other(at)) {
      if (accepts(at->want_.kind, kind)) most = std::max(most, at->want_.max_idle);
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
  // Self-clocked fair queueing (Golestani 1994): a wish starts when the client's former one ends, or now, and takes as
  // long as its class has patience. Who is alone, or the same as all others, is served first come first served.
  static constexpr unsigned kMostClasses = 8;
  static std::uint64_t patience(const Borrower& borrower) {
    return std::uint64_t{1} << (2 * std::min<unsigned>(borrower.want_.priority_class, kMostClasses - 1));
  }
  std::uint64_t turn_of(const Borrower& borrower) {
    const Borrower* former = borrower.want_.fresh ? nullptr : clients_.latest(borrower.want_);
    return (former == nullptr ? served_ : std::max(served_, former->turn_)) + patience(borrower);
  }
  static bool later(const Borrower& one, const Borrower& than) {
    return one.turn_ != than.turn_ ? one.turn_ > than.turn_ : one.ticket_ > than.ticket_;
  }
  static Borrower* accepting(List<Borrower, WaitersTag>& part, Kind kind) {
    Borrower* at = part.next(nullptr);
    while (at != nullptr && !accepts(at->want_.kind, kind)) at = part.next(at);
    return at;
  }
  std::uint32_t& kind_of(const Borrower& borrower) { return by_kind_[static_cast<std::size_t>(borrower.want_.kind)]; }
  std::uint32_t& class_of(const Borrower& borrower) {
    return borrower.want_.fresh ? fresh_ : by_class_[share_of(borrower.want_)];
  }
  std::uint32_t& size_of(const Borrower& borrower) { return borrower.want_.fresh ? replays_size_ : others_size_; }

  List<Borrower, WaitersTag> replays_, others_;
  std::uint32_t replays_size_ = 0, others_size_ = 0;
  std::uint64_t served_ = 0;                // the turn of the latest one who was served
  std::array<std::uint32_t, 3> by_kind_{};  // by Kinds
  std::array<std::uint32_t, Shares::kMostClasses> by_class_{};
  std::uint32_t fresh_ = 0;  // replays, which have no share
  Clients clients_;
};

}  // namespace carpool::pool
