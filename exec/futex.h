// The kernel's part of Parker: a thread blocks on an atomic word. tests/explorer defines these calls for its own word.
#pragma once

#include <cstdint>
#include <ctime>

#include "exec/atomic.h"

namespace carpool::exec {

// Blocks if `word` still is `value`. May return at any time: the caller checks again. Null: no timeout.
void futex_wait(Atomic<std::uint32_t>& word, std::uint32_t value, const std::timespec* timeout);
void futex_wake(Atomic<std::uint32_t>& word);

}  // namespace carpool::exec
