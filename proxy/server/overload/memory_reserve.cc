#include "proxy/server/overload/memory_reserve.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>

namespace carpool::proxy::memory_reserve {

namespace {
// Enough for the few hundred requests that may begin between two samples of the OverloadMonitor. The slices are never
// touched: only the first page of each is resident.
constexpr auto kSlice = std::size_t{256} * 1024;
constexpr int kInternal = 3;  // exit code of the contract
constexpr std::string_view kExitMessage = "carpool: out of memory: the reserve is used up; exiting\n";

// refill() stores with release; give() takes with acq_rel, so each slice is freed once.
std::array<std::atomic<void*>, 8> slices;
std::atomic<std::uint64_t> taken_so_far{0};  // relaxed: a counter
std::terminate_handler usual = nullptr;

// The new-handler: operator new calls it when malloc fails, and retries when it returns. Several threads may call it
// concurrently.
void give() {
  for (std::atomic<void*>& place : slices) {
    if (void* slice = place.exchange(nullptr, std::memory_order_acq_rel)) {
      std::free(slice);  // malloc() does not re-enter this handler
      taken_so_far.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }
  throw std::bad_alloc();
}

bool for_want_of_memory() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return false;
  }
  return false;
}

[[noreturn]] void end() {
  if (for_want_of_memory()) {
    static_cast<void>(!::write(STDERR_FILENO, kExitMessage.data(), kExitMessage.size()));
    std::_Exit(kInternal);
  }
  usual();
  std::abort();
}
}  // namespace

void install() {
  refill();
  usual = std::set_terminate(&end);
  std::set_new_handler(&give);
}

int refill() {
  int there = 0;
  for (std::atomic<void*>& place : slices) {
    // Uses malloc instead of operator new, because a failure here must not consume the reserve.
    if (place.load(std::memory_order_relaxed) == nullptr) place.store(std::malloc(kSlice), std::memory_order_release);
    there += static_cast<int>(place.load(std::memory_order_relaxed) != nullptr);
  }
  return there;
}

std::uint64_t kept() {
  const auto there = [](const std::atomic<void*>& place) { return place.load(std::memory_order_relaxed) != nullptr; };
  return kSlice * static_cast<std::uint64_t>(std::count_if(slices.begin(), slices.end(), there));
}

std::uint64_t taken() {
  return taken_so_far.load(std::memory_order_relaxed);
}

}  // namespace carpool::proxy::memory_reserve
