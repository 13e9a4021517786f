// failing_memory.h: allocations that fail when a test says so. operator new is in failing_new.h; with a sanitizer,
// which has its own, nothing fails.
#pragma once

#include <cstdint>
#include <utility>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CARPOOL_OWN_NEW 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define CARPOOL_OWN_NEW 0
#endif
#endif
#ifndef CARPOOL_OWN_NEW
#define CARPOOL_OWN_NEW 1
#endif

namespace carpool::test {

struct Memory {
  std::uint64_t asked = 0;     // allocations of this thread so far, without the test's own
  std::uint64_t fails_at = 0;  // the number of the one that fails; 0: none
  bool endless = false;        // the test's own allocations
};
Memory& memory();  // of the calling thread

// While an object lives, no allocation fails and none is counted.
class EndlessMemory {
 public:
  EndlessMemory() : before_(std::exchange(memory().endless, true)) {}
  EndlessMemory(const EndlessMemory&) = delete;
  EndlessMemory& operator=(const EndlessMemory&) = delete;
  ~EndlessMemory() { memory().endless = before_; }

 private:
  const bool before_;
};

}  // namespace carpool::test
