// Heap: what malloc holds of the kernel's memory, and how it gives back what is free. The door to glibc's malloc, which
// by itself gives back only what lies at the top of an arena: after a burst most of it does not.
#pragma once

#include <cstdint>

namespace carpool::proxy {

struct HeapUse {
  std::uint64_t resident = 0;  // bytes of pages that are in memory and no file's: the heap, stacks, our own data
  std::uint64_t used = 0;      // bytes of blocks that somebody has, but the memory reserve's, which are not resident
  std::uint64_t unused() const { return resident > used ? resident - used : 0; }
};

// A file below /proc and a walk over each arena's free blocks under its lock: microseconds as a rule, but milliseconds
// where a hundred thousand of them are scattered.
HeapUse heap_use();
// Some milliseconds, arena after arena under its lock: off the loops. An allocation may wait for a part of it.
void give_back_free_pages();

}  // namespace carpool::proxy
