// The seam between the pool and the machine's memory: what threads share goes through Atomic and Mutex. The shipped
// build has the standard's; the explorer (tests/explorer) substitutes its own, which stop at every access, so that it
// can try the orders in which threads may meet and how long a store may stay unseen. What is not ordered by anything
// (counters of one loop, times that a word's CAS confirms) stays with std::atomic: no order of those can matter.
#pragma once

#ifdef CARPOOL_POOL_ATOMIC
#include CARPOOL_POOL_ATOMIC
#else

#include <atomic>
#include <mutex>

namespace carpool::pool {

template <class T>
using Atomic = std::atomic<T>;
using Mutex = std::mutex;

}  // namespace carpool::pool

#endif
