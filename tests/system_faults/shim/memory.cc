// Allocations, which fail as they do when the kernel maps no more pages. dlsym() allocates: glibc's own names are used.
#include <cerrno>
#include <cstddef>

#include "control.h"

using system_faults::fails;
using system_faults::Function;

extern "C" {

void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* old, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
  return fails(Function::memory) ? nullptr : __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size) {
  return fails(Function::memory) ? nullptr : __libc_calloc(count, size);
}

void* realloc(void* old, std::size_t size) {
  return fails(Function::memory) ? nullptr : __libc_realloc(old, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return fails(Function::memory) ? nullptr : __libc_memalign(alignment, size);
}

int posix_memalign(void** into, std::size_t alignment, std::size_t size) {
  *into = fails(Function::memory) ? nullptr : __libc_memalign(alignment, size);
  return *into == nullptr ? ENOMEM : 0;
}

}  // extern "C"
