// Frames as they pass, for what the library does not tell: DATA and RST_STREAM on streams that are over, and PRIORITY,
// which says nothing to us but must not make a stream depend on itself (RFC 9113 §5.1, §5.3.2).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace carpool::proxy::http {

class FrameWatch {
 public:
  // Bytes behind the preface, in any split. visit(type, stream) for each frame; with PRIORITY, visit(type, 0) where the
  // stream depends on itself.
  template <class Visit>
  void pass(std::string_view bytes, const Visit& visit) {
    while (!bytes.empty()) {
      const std::size_t passed = std::min<std::size_t>(skip_, bytes.size());
      skip_ -= static_cast<std::uint32_t>(passed);
      bytes.remove_prefix(passed);
      if (bytes.empty()) break;
      const std::size_t taken = std::min(wanted() - have_, bytes.size());
      std::copy_n(bytes.data(), taken, head_.data() + have_);
      have_ += taken;
      bytes.remove_prefix(taken);
      if (have_ == wanted()) end_of_head(visit);
    }
  }

 private:
  static constexpr std::size_t kHead = 9, kParent = 4;
  static constexpr std::uint8_t kPriority = 2;
  std::size_t wanted() const { return have_ >= kHead && priority() ? kHead + kParent : kHead; }
  bool priority() const { return byte(3) == kPriority && length() == kParent + 1; }
  std::uint32_t byte(std::size_t at) const { return static_cast<unsigned char>(head_[at]); }
  std::uint32_t length() const { return byte(0) << 16 | byte(1) << 8 | byte(2); }
  std::uint32_t stream(std::size_t at) const {
    return (byte(at) & 0x7f) << 24 | byte(at + 1) << 16 | byte(at + 2) << 8 | byte(at + 3);
  }
  template <class Visit>
  void end_of_head(const Visit& visit) {
    const bool more = have_ > kHead;
    const std::uint32_t id = stream(5);
    skip_ = length() - (more ? static_cast<std::uint32_t>(kParent) : 0);
    have_ = 0;
    visit(byte(3), more && id == stream(kHead) ? 0 : id);
  }
  std::array<char, kHead + kParent> head_{};
  std::size_t have_ = 0;
  std::uint32_t skip_ = 0;  // of a payload
};

}  // namespace carpool::proxy::http
