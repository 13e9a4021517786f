#include "proxy/overload/heap.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "proxy/overload/memory_reserve.h"

namespace carpool::proxy {

HeapUse heap_use() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t total = 0, resident = 0, shared = 0;
  file >> total >> resident >> shared;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const struct mallinfo2 info = ::mallinfo2();
  const std::uint64_t mapped = info.hblkhd - std::min<std::uint64_t>(info.hblkhd, memory_reserve::kept());
  return {(resident - shared) * page, info.uordblks + mapped};
}

void give_back_free_pages() {
  ::malloc_trim(0);
}

}  // namespace carpool::proxy
