#include "exec/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace carpool::exec {

static_assert(sizeof(Atomic<std::uint32_t>) == sizeof(std::uint32_t));

void futex_wait(Atomic<std::uint32_t>& word, std::uint32_t value, const std::timespec* timeout) {
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, timeout, nullptr, 0);
}

void futex_wake(Atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace carpool::exec
