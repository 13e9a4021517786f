#include "exec/read_buffer.h"

#include <exception>

#include "base/assert.h"

namespace carpool::exec {

ReadBuffer::ReadBuffer(Loop& loop) : loop_(loop), leases_before_(loop.leases().out()), span_(loop.scratch()) {
  if (!loop.scratch_in_use_) {
    loop.scratch_in_use_ = true;
    return;
  }
  own_ = std::make_unique_for_overwrite<char[]>(span_.size());
  span_ = {own_.get(), span_.size()};
}

ReadBuffer::~ReadBuffer() {
  CARPOOL_ASSERT(loop_.leases().out() <= leases_before_ || std::uncaught_exceptions() != 0);
  if (own_ == nullptr) loop_.scratch_in_use_ = false;
}

}  // namespace carpool::exec
