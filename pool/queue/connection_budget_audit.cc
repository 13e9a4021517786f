// ConnectionBudget::audit(): compares the budget with the connections of its destinations.
#include "pool/queue/connection_budget.h"

namespace carpool::pool {

void ConnectionBudget::audit(const std::vector<BudgetShare>& shares, AuditReport& report) const {
  const Held lock(mutex_);
  std::uint64_t taken = 0, pending = 0, starved = 0, idle = 0;
  for (const BudgetShare& share : shares) {
    const bool queued = static_cast<const ListHook<StarvedTag>&>(*share.waiter).linked();
    const bool offered = static_cast<const ListHook<OfferTag>&>(*share.waiter).linked();
    taken += share.slots;
    pending += share.announced;
    starved += queued ? 1 : 0;
    idle += share.has_idle ? 1 : 0;
    report.equal("slots granted and not used", share.waiter->granted_.load(std::memory_order_relaxed), 0);
    report.equal("the mark of an offer", share.waiter->offers_.load(std::memory_order_relaxed), offered ? 1 : 0);
    report.expect(!queued || share.waits, "a destination without a waiter is starved");
    report.expect(!share.has_idle || offered, "a destination with an idle connection offers none");
  }
  report.equal("slots taken", taken_.load(std::memory_order_relaxed), taken);
  report.equal("slots that are freed soon", pending_.load(std::memory_order_relaxed), pending);
  report.equal("starved destinations", starved_size_.load(std::memory_order_relaxed), starved);
  report.equal("threads that free a slot", freeing_, 0);
  report.expect(starved == 0 || taken >= cap_, "a destination is starved while a slot is free");
  report.expect(starved <= pending || idle == 0, "a destination is starved while another one has an idle connection");
}

}  // namespace carpool::pool
