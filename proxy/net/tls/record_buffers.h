// RecordBuffers: the buffers in which OpenSSL reads and writes records. It takes one for each record and returns it at
// once, so that an idle connection holds none; malloc() serves blocks of this size from its slow lists. Each thread
// keeps a few, which also stay in its cache.
#pragma once

#include <malloc.h>

#include <array>
#include <cstddef>
#include <cstdlib>

namespace carpool::proxy::tls {

class RecordBuffers {
 public:
  static constexpr std::size_t kLeast = 16'385;  // more than a record's text
  static constexpr std::size_t kBlock = 17'408;  // and what OpenSSL 3.0 adds to it
  static constexpr std::size_t kMax = 2;         // one to read, one to write

  static bool fits(std::size_t size) { return size >= kLeast && size <= kBlock; }
  // Returns nullptr if none is kept.
  void* take() { return count_ == 0 ? nullptr : blocks_[--count_]; }
  // Returns false if `block`, from malloc(), is of another size, or enough are kept: the caller still owns it.
  bool keep(void* block) {
    if (count_ == capacity_ || !is_buffer(::malloc_usable_size(block))) return false;
    blocks_[count_++] = block;
    return true;
  }
  // Frees the kept buffers, and keeps none from now on.
  void close() {
    capacity_ = 0;
    while (count_ != 0) std::free(take());
  }

 private:
  static bool is_buffer(std::size_t usable) { return usable >= kBlock && usable < kBlock + alignof(std::max_align_t); }
  std::size_t count_ = 0, capacity_ = kMax;
  std::array<void*, kMax> blocks_{};
};

}  // namespace carpool::proxy::tls
