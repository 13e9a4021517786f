#include "tests/sim/data_plane/held_memory.h"

#include <malloc.h>

#include <cerrno>
#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CARPOOL_HOOKED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CARPOOL_HOOKED 1
#endif

namespace {

struct Tally {
  std::int64_t bytes = 0;
  bool counts = false;
};
constinit thread_local Tally tally;

}  // namespace

namespace carpool::test {

std::int64_t HeldMemory::bytes() {
  return tally.bytes;
}
void HeldMemory::restart() {
  tally = {};
}
bool HeldMemory::count(bool on) {
  return std::exchange(tally.counts, on);
}

}  // namespace carpool::test

#ifdef CARPOOL_HOOKED

// A sanitizer's allocator calls these.
extern "C" {
int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void*, std::size_t),
                                              void (*free_hook)(const volatile void*));
std::size_t __sanitizer_get_allocated_size(const volatile void* block);
}
namespace {

[[maybe_unused]] const int hooked = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, std::size_t size) {
      if (tally.counts) tally.bytes += static_cast<std::int64_t>(size);
    },
    [](const volatile void* block) {
      if (tally.counts && block != nullptr)
        tally.bytes -= static_cast<std::int64_t>(__sanitizer_get_allocated_size(block));
    });

}  // namespace

#else

// Replace the C library's functions, which call them.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* block, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* block);
}
namespace {

void* taken(void* block) {
  if (tally.counts && block != nullptr) tally.bytes += static_cast<std::int64_t>(malloc_usable_size(block));
  return block;
}
void given(void* block) {
  if (tally.counts && block != nullptr) tally.bytes -= static_cast<std::int64_t>(malloc_usable_size(block));
}

}  // namespace

extern "C" {
void* malloc(std::size_t size) noexcept {
  return taken(__libc_malloc(size));
}
void* calloc(std::size_t count, std::size_t size) noexcept {
  return taken(__libc_calloc(count, size));
}
void* realloc(void* block, std::size_t size) noexcept {
  given(block);
  void* const moved = __libc_realloc(block, size);
  if (moved == nullptr && size != 0) return taken(block), nullptr;
  return taken(moved);
}
void* memalign(std::size_t alignment, std::size_t size) noexcept {
  return taken(__libc_memalign(alignment, size));
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return taken(__libc_memalign(alignment, size));
}
int posix_memalign(void** into, std::size_t alignment, std::size_t size) noexcept {
  void* const block = taken(__libc_memalign(alignment, size));
  if (block == nullptr) return ENOMEM;
  *into = block;
  return 0;
}
void free(void* block) noexcept {
  given(block);
  __libc_free(block);
}
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming)

#endif
