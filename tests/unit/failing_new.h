// failing_new.h: operator new of a test program whose allocations fail when a test says so. Included by exactly one
// file of a program.
#pragma once

#include <cstdlib>
#include <new>

#include "tests/unit/failing_memory.h"

namespace carpool::test {
Memory& memory() {
  thread_local Memory mine;
  return mine;
}
}  // namespace carpool::test

namespace {
using carpool::test::memory;

[[maybe_unused]] void* allocate(std::size_t size, std::size_t alignment) {
  if (!memory().endless && ++memory().asked == memory().fails_at) throw std::bad_alloc();
  const std::size_t least = size == 0 ? 1 : size;
  void* taken = alignment == 0 ? std::malloc(least)
                               : std::aligned_alloc(alignment, (least + alignment - 1) / alignment * alignment);
  if (taken == nullptr) throw std::bad_alloc();
  return taken;
}
}  // namespace

#if CARPOOL_OWN_NEW
void* operator new(std::size_t size) {
  return allocate(size, 0);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}
#endif
