#include "control.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace system_faults {
namespace {

std::atomic<Control*> mapped{nullptr};

// Runs before main(), and once more in every program that this one executes.
[[gnu::constructor]] void map() {
  const char* path = std::getenv("SYSTEM_FAULTS");
  if (path == nullptr) return;
  const int fd = real<decltype(::open)>("open")(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) std::abort();
  void* at = ::mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) std::abort();
  ::close(fd);
  mapped = static_cast<Control*>(at);
}

}  // namespace

Control* control() {
  return mapped.load(std::memory_order_acquire);
}

bool fails(Function function) {
  Control* const at = control();
  if (at == nullptr || function == Function::none) return false;
  ++at->calls[static_cast<std::uint64_t>(function)];
  if (at->function != static_cast<std::uint64_t>(function)) return false;
  const std::uint64_t nth = ++at->seen;
  if (nth < at->nth || nth - at->nth >= at->times) return false;
  ++at->failed;
  errno = static_cast<int>(at->error);
  return true;
}

}  // namespace system_faults
