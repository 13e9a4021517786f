// Memory of the heap that one thread frees and another one gets: the allocator orders their accesses, and the model
// does not know it. So the accesses to freed memory are forgotten.
#include <malloc.h>

#include <cstddef>
#include <cstdlib>
#include <new>

#include "tests/explorer/machine.h"

void* operator new(std::size_t size) {
  void* const made = std::malloc(size == 0 ? 1 : size);
  if (made == nullptr) throw std::bad_alloc();
  return made;
}

void operator delete(void* freed) noexcept {
  if (freed == nullptr) return;
  if (auto* machine = carpool::explore::Machine::exploring()) machine->forget(freed, ::malloc_usable_size(freed));
  std::free(freed);
}

void operator delete(void* freed, std::size_t) noexcept {
  ::operator delete(freed);
}
