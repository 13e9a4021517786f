// Atomic and Mutex: the synchronization primitives of the pool. The shipped build uses the standard's. The explorer
// (tests/explorer) substitutes its own, which stop at every access, to try thread interleavings and old values.
// Values that order nothing (counts, times that a word's CAS confirms) stay std::atomic: every access is relaxed.
#pragma once

#ifdef CARPOOL_POOL_ATOMIC
#include CARPOOL_POOL_ATOMIC
#else

#include <atomic>

#include "base/mutex.h"

namespace carpool::pool {

template <class T>
using Atomic = std::atomic<T>;
using Mutex = carpool::Mutex;

}  // namespace carpool::pool

#endif
