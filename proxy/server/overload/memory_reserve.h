// MemoryReserve: memory that is kept for the moment when an allocation fails. The one who asked gets it instead of an
// exception, and the watch closes what rests. The same idea as Stroustrup's new-handler that frees a reserve (The C++
// Programming Language, 4th edition, 11.2.4).
//
// Only what cannot be served from it throws std::bad_alloc. The pool answers that with a Fault; a loop's turn is half
// done then and ends the program, with one line and exit code 3 (docs/decisions/0012).
#pragma once

#include <cstdint>

namespace carpool::proxy::memory_reserve {

// First thing in main(): from now on an allocation that fails takes a slice of the reserve and is tried again.
void install();

// The watch's thread alone: as many slices as there is memory for. How many there are then; 0: the next failure throws.
int refill();

// Bytes that are kept now; hardly a page of them is resident.
std::uint64_t kept();

// How many slices were ever taken.
std::uint64_t taken();

}  // namespace carpool::proxy::memory_reserve
