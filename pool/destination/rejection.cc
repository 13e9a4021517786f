#include "pool/destination/rejection.h"

#include <new>
#include <utility>

#include "pool/destination/destination_impl.h"

namespace carpool::pool {

Fault told(FaultKind kind, Side side, const char* words) noexcept {
  Fault fault(kind, side);
  try {
    fault.detail = words;
  } catch (const std::bad_alloc&) {  // the kind says enough
  }
  return fault;
}

Fault copy_of(const Fault& fault) noexcept {
  Fault copy = told(fault.kind, fault.side, fault.detail.c_str());
  copy.retry = fault.retry;
  return copy;
}

void Refusal::arrive(Instant) {
  Destination::Impl& pool = *owner;
  Borrower& meant = *borrower;
  const bool still = meant.ticket_ == ticket;
  Fault no = std::move(fault);
  {
    const std::scoped_lock lock(pool.mutex);
    pool.refusals.put(*this);
  }
  if (still) pool.tell(meant, std::move(no));
}

// On the borrower's loop, at the top of a turn.
void Destination::Impl::tell(Borrower& borrower, Fault no) {
  borrower.ticket_ = 0;
  if (borrower.want_.tunnel) return_tunnel_place();
  borrower.on_refused(std::move(no));
}

// Under the mutex; the borrower is in line.
void Destination::Impl::refuse(Borrower& borrower, const Fault& fault, Errands& work) {
  line.leave(borrower);
  attention.fetch_sub(1, std::memory_order_seq_cst);
  Refusal& refusal = refusals.take();
  refusal.owner = this;
  refusal.borrower = &borrower;
  refusal.ticket = borrower.ticket_;
  refusal.to = borrower.loop_;
  refusal.fault = copy_of(fault);
  work.refusals.push(refusal);
}

// Under the mutex: one more may join the line, and whatever becomes of it, it will be told without memory.
bool Destination::Impl::ready_to_wait() {
  return refusals.ready(line.size() + std::size_t{1});
}

}  // namespace carpool::pool
