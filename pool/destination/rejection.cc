#include "pool/destination/rejection.h"

#include <new>
#include <utility>

#include "pool/destination/destination_impl.h"

namespace carpool::pool {

Fault make_fault(FaultKind kind, Side side, const char* words) noexcept {
  Fault fault(kind, side);
  try {
    fault.detail = words;
  } catch (const std::bad_alloc&) {  // the kind is sufficient
  }
  return fault;
}

Fault copy_of(const Fault& fault) noexcept {
  return make_fault(fault.kind, fault.side, fault.detail.c_str());
}

void Rejection::arrive(Instant now) {
  Destination::Impl& pool = *owner;
  Borrower& meant = *borrower;
  const bool still = meant.ticket_ == ticket;
  Fault why = std::move(fault);
  {
    const Held lock(pool.mutex);
    pool.rejections.put(*this);
  }
  if (still) pool.deliver_rejection(meant, std::move(why), now);
}

// Must be called on the borrower's loop, at top level.
void Destination::Impl::deliver_rejection(Borrower& borrower, Fault fault, Instant now) {
  borrower.ticket_ = 0;
  if (borrower.want_.tunnel) return_tunnel_place(now);
  borrower.on_refused(std::move(fault));
}

// The borrower must be in a queue. A tunnel that waits for a place takes one, above the limit, because its rejection
// returns one.
void Destination::Impl::refuse(Borrower& borrower, const Fault& fault, DeferredActions& actions) {
  remove_waiter(borrower);
  if (std::exchange(borrower.awaits_place_, false)) tunnels.take();
  Rejection& rejection = rejections.take();
  rejection.owner = this;
  rejection.borrower = &borrower;
  rejection.ticket = borrower.ticket_;
  rejection.to = borrower.loop_;
  rejection.fault = copy_of(fault);
  actions.rejections.push(rejection);
}

// Returns the reason why the destination lends nothing any more, or nullopt.
std::optional<Fault> Destination::Impl::why_ended() const {
  if (stopped()) return make_fault(FaultKind::draining, Side::self, "the pool is stopping");
  if (is_replaced()) return make_fault(FaultKind::draining, Side::self, kReplacedPool);
  return std::nullopt;
}

// Returns true if one more waiter can be enqueued and later refused without allocating.
bool Destination::Impl::ready_to_wait() {
  return rejections.ready(waiters() + std::size_t{1});
}

}  // namespace carpool::pool
