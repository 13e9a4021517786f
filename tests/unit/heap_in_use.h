// heap_in_use: the bytes of the heap that the thread of the tests has allocated and not freed. With a sanitizer, which
// has its own heap, the number does not change.
#pragma once

#include <malloc.h>

#include <cstdint>

namespace carpool::test {

inline std::int64_t heap_in_use() {
  const struct mallinfo2 all = ::mallinfo2();
  return static_cast<std::int64_t>(all.uordblks + all.hblkhd);
}

}  // namespace carpool::test
