// WriteBatch: the pieces of one write in order: small owned text (heads, chunk framing) between external bytes that are
// sent without copying. It is filled and sent within one event, so no large piece is copied that the socket accepts at
// once. Small pieces are copied: a head and its short body then leave as one piece by send(), which costs less than
// sendmsg() with two (measured: 6.8 against 7.0 us for 1.2 KiB; copying 1 KiB costs 0.02).
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace carpool::proxy {

class WriteBatch {
 public:
  // Append owned bytes here; they keep their position among the external pieces.
  std::string& text() { return text_; }
  // Adds external bytes, which must stay alive until the batch is sent.
  void add(std::string_view bytes) {
    if (bytes.size() <= kCopied && text_.size() < kMaxText) {
      text_.append(bytes);
      return;
    }
    if (bytes.empty()) return;
    seal_text();
    pieces_.push_back({bytes.data(), bytes.size()});
    size_ += bytes.size();
  }
  std::size_t size() const { return size_ + (text_.size() - sealed_); }
  bool empty() const { return size() == 0; }
  bool only_text() const { return pieces_.empty(); }  // text() is all of it
  void clear() {
    text_.clear();
    if (only_text()) return;
    pieces_.clear();
    vector_.clear();
    sealed_ = size_ = 0;
  }
  // Returns the pieces as iovecs, after `waiting`. Valid until the batch changes.
  std::vector<iovec>& vector_behind(std::string_view waiting) {
    vector_.clear();
    if (!waiting.empty()) vector_.push_back({const_cast<char*>(waiting.data()), waiting.size()});
    seal_text();
    std::size_t offset = 0;
    for (const Piece& piece : pieces_) {
      const char* data = piece.data;
      if (data == nullptr) {
        data = text_.data() + offset;
        offset += piece.size;
      }
      vector_.push_back({const_cast<char*>(data), piece.size});
    }
    return vector_;
  }
  // Returns the capacity of the owned text.
  std::size_t capacity() const { return text_.capacity(); }

 private:
  static constexpr std::size_t kCopied = 2048;
  static constexpr std::size_t kMaxText = std::size_t{16} * 1024;  // limit of copied external bytes
  struct Piece {
    const char* data;  // nullptr: the next `size` bytes of text_
    std::size_t size;
  };
  void seal_text() {
    if (text_.size() == sealed_) return;
    pieces_.push_back({nullptr, text_.size() - sealed_});
    size_ += text_.size() - sealed_;
    sealed_ = text_.size();
  }
  std::string text_;
  std::vector<Piece> pieces_;
  std::vector<iovec> vector_;
  std::size_t sealed_ = 0;  // bytes of text_ that are already in pieces_
  std::size_t size_ = 0;    // bytes in pieces_
};

}  // namespace carpool::proxy
