// Heap: memory statistics of malloc, and a function that returns free memory to the kernel. Wraps glibc's malloc, which
// itself returns only the top of an arena; after a burst most free memory is elsewhere.
#pragma once

#include <cstdint>

namespace carpool::proxy {

struct HeapUse {
  std::uint64_t resident = 0;  // bytes of resident anonymous pages: the heap, stacks, static data
  std::uint64_t used = 0;      // bytes of allocated blocks, without the memory reserve, which is not resident
  std::uint64_t unused() const { return resident > used ? resident - used : 0; }
};

// Reads a file below /proc and iterates over each arena's free blocks under its lock. Usually takes microseconds, but
// milliseconds with a hundred thousand scattered blocks.
HeapUse heap_use();
// Takes some milliseconds, arena after arena under its lock, so it must not run on a loop. An allocation may wait for
// part of that time.
void give_back_free_pages();

}  // namespace carpool::proxy
