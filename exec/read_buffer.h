// ReadBuffer: the buffer of one read on a loop, held while views into it are in use, so that no other read overwrites
// it: a nested read gets its own memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "exec/loop.h"

namespace carpool::exec {

class ReadBuffer {
 public:
  explicit ReadBuffer(Loop& loop) LOOP_ONLY;
  // Asserts that everything leased while the buffer was held is returned: it may contain views into the buffer.
  ~ReadBuffer();
  ReadBuffer(const ReadBuffer&) = delete;
  ReadBuffer& operator=(const ReadBuffer&) = delete;

  std::span<char> span() const { return span_; }
  std::size_t size() const { return span_.size(); }
  std::span<char> first(std::size_t size) const { return span_.first(size); }
  // Returns the first `size` bytes.
  std::string_view view(std::size_t size) const { return {span_.data(), size}; }

 private:
  Loop& loop_;
  const std::uint32_t leases_before_;
  std::unique_ptr<char[]> own_;  // null: the loop's buffer
  std::span<char> span_;
};

}  // namespace carpool::exec
