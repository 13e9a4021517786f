#include "exec/uv/allocator.h"

#include <uv.h>

#include <cstdlib>

#include "base/assert.h"
#include "base/c_allocator.h"

namespace carpool::exec {

void use_c_allocator_in_libuv() {
  const int replaced =
      uv_replace_allocator(&c_allocator::allocate, &c_allocator::reallocate, &c_allocator::allocate_zeroed, &std::free);
  CARPOOL_ASSERT(replaced == 0);
}

}  // namespace carpool::exec
