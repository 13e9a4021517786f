// Waiting: the two queues of a destination, and the way from the one for a place of max_tunnels to the one for a
// connection.
#include "pool/destination/destination_impl.h"

namespace carpool::pool {

// Enqueues a new borrower: a tunnel without a place waits for one first.
void Destination::Impl::push_waiter(Borrower& borrower) {
  borrower.awaits_place_ = borrower.want_.tunnel && tunnels.must_wait(limits.max_tunnels);
  if (borrower.want_.tunnel && !borrower.awaits_place_) tunnels.take();
  (borrower.awaits_place_ ? tunnels.waiters : queue).push(borrower);
  attention.fetch_add(1, std::memory_order_seq_cst);  // then schedule() searches: see destination_impl.h
}

// Removes a waiter that is not served. A tunnel's place stays taken.
void Destination::Impl::remove_waiter(Borrower& borrower) {
  (borrower.awaits_place_ ? tunnels.waiters : queue).remove(borrower);
  attention.fetch_sub(1, std::memory_order_seq_cst);
  offer_surplus_dials();
}

// Gives the free places to the borrowers that wait for one. Called by schedule(), so it follows whatever frees a place.
void Destination::Impl::admit_tunnels(DeferredActions& actions, Instant now) {
  while (!tunnels.waiters.empty() && tunnels.free(limits.max_tunnels) && actions.step()) {
    Borrower& borrower = *tunnels.waiters.first();
    tunnels.waiters.remove_served(borrower);
    tunnels.take();
    borrower.awaits_place_ = false;
    if (limits.half_tunnels && auto_size != nullptr) auto_size->note_place_wait(now - borrower.since_);
    borrower.virtual_finish_time_ = 0;  // its turn among those that wait for a connection begins now
    borrower.since_ = now;
    queue.push(borrower);
  }
}

void Destination::Impl::return_tunnel_place(Instant now) {
  {
    const Held lock(mutex);
    tunnels.put_back();
  }
  serve_waiters(now);
}

}  // namespace carpool::pool
