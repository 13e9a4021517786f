// Atomic: the atomics of the execution protocols (the strategy's word, the reserved slots, the mailbox, the parker),
// which tests/explorer replaces, as it does those of pool/atomic.h.
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
