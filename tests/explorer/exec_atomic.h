// exec_atomic.h: replaces exec/atomic.h in the explorer's build.
#pragma once

#include "tests/explorer/atomic.h"

namespace carpool::exec {

template <class T>
using Atomic = pool::Atomic<T>;

}  // namespace carpool::exec
