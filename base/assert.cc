#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace carpool {

void assert_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "carpool: impossible state: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace carpool
