// Allocation for C libraries. As operator new does, it asks the new-handler for memory before it fails: a library then
// uses the same reserve as the program, and an allocation that fails once fails no request.
#pragma once

#include <cstddef>

namespace carpool::c_allocator {

// The contract of malloc() and friends; free() takes the blocks. Null once the new-handler gives up.
void* allocate(std::size_t size) noexcept;
void* allocate_zeroed(std::size_t count, std::size_t size) noexcept;
void* reallocate(void* block, std::size_t size) noexcept;

// For a library that calls malloc() itself: asks the new-handler after such a call failed. Returns true if the call
// may be repeated, false if the memory is exhausted.
bool ask_for_memory() noexcept;

}  // namespace carpool::c_allocator
