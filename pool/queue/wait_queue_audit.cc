// WaitQueue::audit(): compares the trees with their sizes, their order, and the longest idle time that each accepts.
#include "pool/queue/wait_queue.h"

namespace carpool::pool {

struct WaitQueue::Recount {
  std::uint32_t retries = 0, others = 0, clients = 0;
  std::array<std::uint32_t, kKindsWanted> by_kind{};
  std::array<std::uint32_t, ClassQuota::kMaxClasses> by_class{};

  void count(const Queue& queue, std::size_t row, std::size_t kind, AuditReport& report) {
    Duration most = Duration::min();
    const Borrower* former = nullptr;
    for (Borrower* at = queue.first(); at != nullptr; former = at, at = queue.next(*at)) {
      const BorrowRequest& want = at->want_;
      const bool fits = want.new_connection_only ? row == kRetries : row == kOthers + share_of(want);
      report.expect(fits && number(want.kind) == kind, "a waiter is in another queue than it should be");
      report.expect(at->ticket_ != 0 && at->virtual_finish_time_ != 0, "a waiter has no position");
      report.expect(former == nullptr || TurnOrder::before(*former, *at), "a waiter is before an earlier one");
      most = std::max(most, want.max_idle);
      ++(want.new_connection_only ? retries : others);
      ++by_kind[kind];
      if (!want.new_connection_only) ++by_class[share_of(want)];
    }
    report.expect(queue.empty() || queue.summary() == most, "the longest idle time of a queue is another one");
  }
};

void WaitQueue::audit(AuditReport& report) const {
  Recount counted;
  for (std::size_t n = 0; n < queues_.size(); ++n)
    counted.count(queues_[n], n / kKindsWanted, n % kKindsWanted, report);
  const Borrower* former = nullptr;
  for (Borrower* at = clients_.first(); at != nullptr; former = at, at = clients_.next(*at)) {
    report.expect(former == nullptr || ClientOrder::before(*former, *at), "a client's waiter is before an earlier one");
    ++counted.clients;
  }
  report.equal("the waiting retries", retries_size_, counted.retries);
  report.equal("the other waiters", others_size_, counted.others);
  report.equal("the waiters by client", counted.clients, counted.others);
  report.equal("the retries without a share", retry_class_, counted.retries);
  for (std::size_t n = 0; n < kKindsWanted; ++n) report.equal("the waiters of a kind", by_kind_[n], counted.by_kind[n]);
  for (std::size_t n = 0; n < by_class_.size(); ++n)
    report.equal("the waiters of a class", by_class_[n], counted.by_class[n]);
}

}  // namespace carpool::pool
