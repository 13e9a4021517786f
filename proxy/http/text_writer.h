// TextWriter: appends many short pieces to a text as a few long ones.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace carpool::proxy::http {

// The pieces are in the text after flush() or the end of the writer; until then nothing else may append to the text.
class TextWriter {
 public:
  explicit TextWriter(std::string& out) : out_(out) {}
  TextWriter(const TextWriter&) = delete;
  TextWriter& operator=(const TextWriter&) = delete;
  ~TextWriter() { flush(); }

  // Inlined, so that a constant is stored without a call.
  [[gnu::always_inline]] TextWriter& add(std::string_view piece) {
    if (piece.size() > sizeof buffer_ - size_) return add_long(piece);
    if (!piece.empty()) std::memcpy(buffer_ + size_, piece.data(), piece.size());
    size_ += piece.size();
    return *this;
  }
  TextWriter& add(std::uint64_t value) {
    constexpr std::size_t kUint64Digits = 20;
    if (sizeof buffer_ - size_ < kUint64Digits) flush();
    size_ = static_cast<std::size_t>(std::to_chars(buffer_ + size_, buffer_ + sizeof buffer_, value).ptr - buffer_);
    return *this;
  }
  void flush() {
    if (size_ != 0) out_.append(buffer_, size_);
    size_ = 0;
  }

 private:
  TextWriter& add_long(std::string_view piece) {
    flush();
    out_.append(piece);
    return *this;
  }

  std::string& out_;
  std::size_t size_ = 0;
  char buffer_[512];  // only the first size_ bytes are initialized
};

}  // namespace carpool::proxy::http
