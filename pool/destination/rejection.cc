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

void Rejection::arrive(Instant) {
  Destination::Impl& pool = *owner;
  Borrower& meant = *borrower;
  const bool still = meant.ticket_ == ticket;
  Fault no = std::move(fault);
  {
    const Held lock(pool.mutex);
    pool.rejections.put(*this);
  }
  if (still) pool.deliver_rejection(meant, std::move(no));
}

// Must be called on the borrower's loop, at top level.
void Destination::Impl::deliver_rejection(Borrower& borrower, Fault no) {
  borrower.ticket_ = 0;
  if (borrower.want_.tunnel) return_tunnel_place();
  borrower.on_refused(std::move(no));
}

// The borrower must be in the queue.
void Destination::Impl::refuse(Borrower& borrower, const Fault& fault, DeferredActions& actions) {
  queue.remove(borrower);
  attention.fetch_sub(1, std::memory_order_seq_cst);
  offer_surplus_dials();
  Rejection& rejection = rejections.take();
  rejection.owner = this;
  rejection.borrower = &borrower;
  rejection.ticket = borrower.ticket_;
  rejection.to = borrower.loop_;
  rejection.fault = copy_of(fault);
  actions.rejections.push(rejection);
}

// Returns true if one more waiter can be enqueued and later refused without allocating.
bool Destination::Impl::ready_to_wait() {
  return rejections.ready(queue.size() + std::size_t{1});
}

}  // namespace carpool::pool
