#include "proxy/server/overload/heap.h"

#include <malloc.h>

#include <algorithm>

#include "proxy/server/overload/memory_reserve.h"
#include "proxy/telemetry/resource_usage.h"

namespace carpool::proxy {

HeapUse heap_use() {
  const struct mallinfo2 info = ::mallinfo2();
  const std::uint64_t mapped = info.hblkhd - std::min<std::uint64_t>(info.hblkhd, memory_reserve::kept());
  return {resident().own(), info.uordblks + mapped};
}

void give_back_free_pages() {
  ::malloc_trim(0);
}

}  // namespace carpool::proxy
