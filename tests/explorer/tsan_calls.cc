// The functions that code compiled with -fsanitize=thread calls. Plain accesses go to the machine; atomics that the
// explorer does not replace (counts, hints, times) are only performed.
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tests/explorer/machine.h"

namespace {

[[gnu::always_inline]] inline void plain(const void* at, std::size_t size, bool write, const void* code) {
  if (auto* machine = carpool::explore::Machine::exploring()) machine->plain(at, size, write, code);
}

}  // namespace

#ifndef __SANITIZE_THREAD__  // where the program has the real ones
// NOLINTBEGIN: the compiler's names and types
extern "C" {
#define CARPOOL_PLAIN(size)                              \
  void __tsan_read##size(void* at) {                     \
    plain(at, size, false, __builtin_return_address(0)); \
  }                                                      \
  void __tsan_write##size(void* at) {                    \
    plain(at, size, true, __builtin_return_address(0));  \
  }                                                      \
  void __tsan_unaligned_read##size(void* at) {           \
    plain(at, size, false, __builtin_return_address(0)); \
  }                                                      \
  void __tsan_unaligned_write##size(void* at) {          \
    plain(at, size, true, __builtin_return_address(0));  \
  }
CARPOOL_PLAIN(1)
CARPOOL_PLAIN(2)
CARPOOL_PLAIN(4)
CARPOOL_PLAIN(8)
CARPOOL_PLAIN(16)
void __tsan_read_range(void* at, std::size_t size) {
  plain(at, size, false, __builtin_return_address(0));
}
void __tsan_write_range(void* at, std::size_t size) {
  plain(at, size, true, __builtin_return_address(0));
}
void __tsan_vptr_update(void*, void*) {}
void __tsan_vptr_read(void*) {}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}

#define CARPOOL_ATOMIC(bits)                                                                                    \
  using U##bits = std::uint##bits##_t;                                                                          \
  U##bits __tsan_atomic##bits##_load(const volatile U##bits* at, int) {                                         \
    return __atomic_load_n(at, 5);                                                                              \
  }                                                                                                             \
  void __tsan_atomic##bits##_store(volatile U##bits* at, U##bits value, int) {                                  \
    __atomic_store_n(at, value, 5);                                                                             \
  }                                                                                                             \
  U##bits __tsan_atomic##bits##_exchange(volatile U##bits* at, U##bits value, int) {                            \
    return __atomic_exchange_n(at, value, 5);                                                                   \
  }                                                                                                             \
  U##bits __tsan_atomic##bits##_fetch_add(volatile U##bits* at, U##bits value, int) {                           \
    return __atomic_fetch_add(at, value, 5);                                                                    \
  }                                                                                                             \
  U##bits __tsan_atomic##bits##_fetch_sub(volatile U##bits* at, U##bits value, int) {                           \
    return __atomic_fetch_sub(at, value, 5);                                                                    \
  }                                                                                                             \
  U##bits __tsan_atomic##bits##_fetch_or(volatile U##bits* at, U##bits value, int) {                            \
    return __atomic_fetch_or(at, value, 5);                                                                     \
  }                                                                                                             \
  U##bits __tsan_atomic##bits##_fetch_and(volatile U##bits* at, U##bits value, int) {                           \
    return __atomic_fetch_and(at, value, 5);                                                                    \
  }                                                                                                             \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile U##bits* at, U##bits* was, U##bits to, int, int) { \
    return __atomic_compare_exchange_n(at, was, to, false, 5, 5) ? 1 : 0;                                       \
  }                                                                                                             \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile U##bits* at, U##bits* was, U##bits to, int, int) {   \
    return __atomic_compare_exchange_n(at, was, to, false, 5, 5) ? 1 : 0;                                       \
  }
CARPOOL_ATOMIC(8)
CARPOOL_ATOMIC(16)
CARPOOL_ATOMIC(32)
CARPOOL_ATOMIC(64)
void __tsan_atomic_thread_fence(int) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
}
}
// NOLINTEND
#endif
