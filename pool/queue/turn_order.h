// TurnOrder, ClientOrder: the two orders of waiting borrowers: by turn, and by client, to find a client's latest
// request.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "base/clock.h"
#include "base/intrusive_tree.h"
#include "pool/queue/borrower.h"
#include "pool/queue/class_quota.h"

namespace carpool::pool {

// Returns the class whose share a request takes: 0 for a retry, which had its share before.
inline std::uint8_t share_of(const BorrowRequest& want) {
  return want.new_connection_only ? std::uint8_t{0}
                                  : std::min(want.priority_class, std::uint8_t{ClassQuota::kMaxClasses - 1});
}

// Orders by virtual finish time, equal ones by order of enqueueing. The summary of a set is its largest max_idle: the
// longest idle time of a connection that any of its borrowers accepts.
struct TurnOrder {
  using Summary = Duration;
  static bool before(const Borrower& one, const Borrower& other) {
    return one.virtual_finish_time_ != other.virtual_finish_time_
               ? one.virtual_finish_time_ < other.virtual_finish_time_
               : one.ticket_ < other.ticket_;
  }
  static std::uint64_t number(const Borrower& borrower) { return borrower.ticket_; }
  static Duration summary(const Borrower& borrower) { return borrower.want_.max_idle; }
  static Duration join(Duration one, Duration other) { return std::max(one, other); }
};

struct ClientOrder {
  using Summary = NoSummary;
  static bool before(const Borrower& one, const Borrower& other) {
    const auto left = key(one.want_), right = key(other.want_);
    return left != right ? left < right : TurnOrder::before(one, other);
  }
  static std::uint64_t number(const Borrower& borrower) { return borrower.ticket_; }
  static NoSummary summary(const Borrower&) { return {}; }
  static NoSummary join(NoSummary, NoSummary) { return {}; }
  static bool beyond(const Borrower& borrower, const BorrowRequest& want) { return key(want) < key(borrower.want_); }
  static bool same(const Borrower& borrower, const BorrowRequest& want) { return key(want) == key(borrower.want_); }

 private:
  static std::tuple<std::uint64_t, std::uint8_t> key(const BorrowRequest& want) {
    return {want.client, want.priority_class};
  }
};

}  // namespace carpool::pool
