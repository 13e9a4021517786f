// RecordCoalescer: splits scattered bytes into pieces of one TLS record each. Small neighbours (a head and the first
// bytes of its body) are merged to share a record; a piece that fills a record is passed on without copying.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>

namespace carpool::proxy::tls {

class RecordCoalescer {
 public:
  static constexpr std::size_t kRecord = 16384;

  explicit RecordCoalescer(std::span<const iovec> from) : from_(from) { skip_empty(); }

  // Returns the bytes of the next record; empty at the end. Always returns as many as fit a record: a repeated call
  // without advance(), or after bytes were appended, returns the same bytes first.
  std::span<const char> next() {
    if (from_.empty()) return {};
    const auto first = rest(from_.front(), offset_);
    if (first.size() >= kRecord) return first.first(kRecord);
    if (from_.size() == 1) return first;
    std::size_t size = 0, offset = offset_;
    for (const iovec& piece : from_) {
      const auto bytes = rest(piece, offset);
      const std::size_t take = std::min(bytes.size(), kRecord - size);
      if (take > 0) std::memcpy(together_.data() + size, bytes.data(), take);
      size += take;
      offset = 0;
      if (size == kRecord) break;
    }
    return {together_.data(), size};
  }

  void advance(std::size_t bytes) {
    while (bytes > 0) {
      const std::size_t step = std::min(bytes, from_.front().iov_len - offset_);
      offset_ += step;
      bytes -= step;
      skip_empty();
    }
  }

 private:
  static std::span<const char> rest(const iovec& piece, std::size_t offset) {
    return {static_cast<const char*>(piece.iov_base) + offset, piece.iov_len - offset};
  }
  void skip_empty() {
    while (!from_.empty() && offset_ == from_.front().iov_len) {
      from_ = from_.subspan(1);
      offset_ = 0;
    }
  }

  std::span<const iovec> from_;
  std::size_t offset_ = 0;  // into from_.front()
  std::array<char, kRecord> together_;
};

}  // namespace carpool::proxy::tls
