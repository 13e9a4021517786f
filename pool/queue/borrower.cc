#include "pool/queue/borrower.h"

#include <atomic>

namespace carpool::pool {

std::uint64_t next_ticket() {
  // relaxed: only uniqueness matters; the order within a queue comes from its mutex.
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace carpool::pool
