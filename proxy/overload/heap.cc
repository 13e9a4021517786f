#include "proxy/overload/heap.h"

#include <malloc.h>
#include <unistd.h>

#include <fstream>

namespace carpool::proxy {

HeapUse heap_use() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t total = 0, resident = 0, shared = 0;
  file >> total >> resident >> shared;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const struct mallinfo2 info = ::mallinfo2();
  return {(resident - shared) * page, info.uordblks + info.hblkhd};
}

void give_back_free_pages() {
  ::malloc_trim(0);
}

}  // namespace carpool::proxy
