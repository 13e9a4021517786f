// MemoryReserve: memory kept for failing allocations. A failing allocation is served from it instead of throwing, and
// the OverloadMonitor then closes idle connections. The idea is that of Stroustrup's new-handler, which frees a reserve
// (The C++ Programming Language, 4th edition, 11.2.4).
//
// std::bad_alloc is thrown only when the reserve is exhausted. The pool turns it into a Fault. In a turn of a loop,
// which would be left half done, it ends the program with one line and exit code 3 (docs/decisions/0012).
#pragma once

#include <cstdint>

namespace carpool::proxy::memory_reserve {

// Must be called first in main(): from then on a failing allocation takes a slice of the reserve and is retried.
void install();

// Allocates missing slices. Called by the OverloadMonitor's thread only. Returns the number of slices held; 0 means
// that the next failure throws.
int refill();

// Returns the bytes held now; almost none of them are resident.
std::uint64_t kept();

// Returns the total number of slices used so far.
std::uint64_t taken();

}  // namespace carpool::proxy::memory_reserve
