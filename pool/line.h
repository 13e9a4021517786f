// Line: who waits, in the order of turns: first come first served for equals, clients and classes in fair shares.
// Replays stand apart and in front: they take nothing but a new connection, the others take what comes first. Guarded
// by its destination's mutex.
#pragma once

#include <algorithm>
#include <array>
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
  // Somebody waits for a kind that is neither held nor dialed.
  bool lacks_kind(Kind kind, const std::array<std::uint32_t, kKinds>& held, std::uint32_t dials) const {
    const Kinds only = kind == Kind::h1 ? Kinds::h1_only : Kinds::h2_only;
    return wanting(only) != 0 && dials == 0 && held[static_cast<std::size_t>(kind)] == 0;
  }
  std::uint32_t wanting(Kinds kind) const { return by_kind_[static_cast<std::size_t>(kind)]; }
  static bool in(const Borrower& borrower) { return hook(borrower).linked(); }

  // A new one goes behind those whose turn comes before its own; one that comes back, to where it was.
  void join(Borrower& borrower) {
    List<Borrower, WaitersTag>& part = part_of(borrower);
    if (borrower.turn_ == 0) borrower.turn_ = turn_of(part, borrower);
    Borrower* before = part.previous(nullptr);
    while (before != nullptr && later(*before, borrower)) before = part.previous(before);
    part.insert_after(before, borrower);
    ++size_of(borrower);
    ++kind_of(borrower);
  }
  void leave(Borrower& borrower) {
    // Time goes on with who is served, not with who gives up further behind.
    if (part_of(borrower).next(nullptr) == &borrower) {
      served_ = std::max(served_, borrower.turn_);
    }
    hook(borrower).unlink();
    --size_of(borrower);
    --kind_of(borrower);
  }

  // Who is next; null: nobody.
  Borrower* first() { return replays_size_ != 0 ? &replays_.front() : others_.next(nullptr); }
  Borrower* next_replay(Borrower* borrower) { return replays_.next(borrower); }  // null: the first
  Borrower* next_other(Borrower* borrower) { return others_.next(borrower); }
  // Whom a connection of `kind` that never served would go to; whom any of that kind would.
  Borrower* first(Kind kind) {
    Borrower* replay = accepting(replays_, kind);
    return replay != nullptr ? replay : first_other(kind);
  }
  Borrower* first_other(Kind kind) { return accepting(others_, kind); }
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
  std::uint64_t turn_of(List<Borrower, WaitersTag>& part, const Borrower& borrower) const {
    const Want& want = borrower.want_;
    Borrower* former = part.previous(nullptr);
    while (former != nullptr &&
           (former->want_.client != want.client || former->want_.priority_class != want.priority_class)) {
      former = part.previous(former);
    }
    const std::uint64_t start = former == nullptr ? served_ : std::max(served_, former->turn_);
    return start + patience(borrower);
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
  std::uint32_t& size_of(const Borrower& borrower) { return borrower.want_.fresh ? replays_size_ : others_size_; }

  List<Borrower, WaitersTag> replays_, others_;
  std::uint32_t replays_size_ = 0, others_size_ = 0;
  std::uint64_t served_ = 0;                // the turn of the latest one who was served
  std::array<std::uint32_t, 3> by_kind_{};  // by Kinds
};

}  // namespace carpool::pool
