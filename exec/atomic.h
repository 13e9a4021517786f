// The seam between the protocols of execution and the machine's memory, as pool/core/atomic.h is the pool's: what
// threads settle by exchange (the strategy's word, the reserve's places) goes through Atomic, which tests/explorer
// replaces.
#pragma once

#ifdef CARPOOL_EXEC_ATOMIC
#include CARPOOL_EXEC_ATOMIC
#else

#include <atomic>

namespace carpool::exec {

template <class T>
using Atomic = std::atomic<T>;

}  // namespace carpool::exec

#endif
