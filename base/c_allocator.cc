#include "base/c_allocator.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace carpool::c_allocator {

bool ask_for_memory() noexcept {
  const std::new_handler handler = std::get_new_handler();
  if (handler == nullptr) return false;
  try {
    handler();
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

namespace {

template <class Attempt>
void* repeat(Attempt attempt) noexcept {
  void* block = attempt();
  while (block == nullptr && ask_for_memory()) block = attempt();
  return block;
}

}  // namespace

// The size is never 0, for which malloc() may return null although memory is available.
void* allocate(std::size_t size) noexcept {
  return repeat([size = std::max<std::size_t>(size, 1)] { return std::malloc(size); });
}

void* allocate_zeroed(std::size_t count, std::size_t size) noexcept {
  if (count == 0 || size == 0) count = size = 1;
  return repeat([=] { return std::calloc(count, size); });
}

void* reallocate(void* block, std::size_t size) noexcept {
  return repeat([block, size = std::max<std::size_t>(size, 1)] { return std::realloc(block, size); });
}

}  // namespace carpool::c_allocator
