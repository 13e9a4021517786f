// CARPOOL_ASSERT: asserts stay enabled in release builds. They state what is impossible, never what the network may do.
#pragma once

namespace carpool {

[[noreturn]] void assert_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace carpool

#define CARPOOL_ASSERT(condition) \
  (static_cast<bool>(condition) ? static_cast<void>(0) : ::carpool::assert_failed(#condition, __FILE__, __LINE__))
