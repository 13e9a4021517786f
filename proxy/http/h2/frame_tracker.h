// FrameTracker: reports frames that the library does not report: DATA and RST_STREAM on closed streams, and PRIORITY,
// which is otherwise ignored but must not make a stream depend on itself (RFC 9113 §5.1, §5.3.2).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "proxy/http/h2/frame_header.h"

namespace carpool::proxy::http {

class FrameTracker {
 public:
  // Returns how many bytes of an incomplete frame header the last pass() ended with.
  std::size_t begun() const { return have_ < FrameHead::kSize ? have_ : 0; }
  // Parses the bytes after the preface, in any split. Calls visit(type, stream) for each frame, and visit(type, 0) for
  // a PRIORITY that makes its stream depend on itself.
  template <class Visit>
  void pass(std::string_view bytes, const Visit& visit) {
    while (!bytes.empty()) {
      const std::size_t passed = std::min<std::size_t>(skip_, bytes.size());
      skip_ -= static_cast<std::uint32_t>(passed);
      bytes.remove_prefix(passed);
      if (bytes.empty()) break;
      const std::size_t consumed = std::min(wanted() - have_, bytes.size());
      std::copy_n(bytes.data(), consumed, head_.data() + have_);
      have_ += consumed;
      bytes.remove_prefix(consumed);
      if (have_ == wanted()) end_of_head(visit);
    }
  }

 private:
  static constexpr std::size_t kParent = 4;
  FrameHead head() const { return FrameHead::read({head_.data(), FrameHead::kSize}); }
  // The payload of PRIORITY starts with the stream that it depends on.
  std::size_t wanted() const {
    if (have_ < FrameHead::kSize) return FrameHead::kSize;
    const FrameHead frame = head();
    const bool parent = frame.type == FrameHead::priority && frame.length == kParent + 1;
    return FrameHead::kSize + (parent ? kParent : 0);
  }
  template <class Visit>
  void end_of_head(const Visit& visit) {
    const FrameHead frame = head();
    const bool more = have_ > FrameHead::kSize;
    skip_ = frame.length - (more ? static_cast<std::uint32_t>(kParent) : 0);
    have_ = 0;
    const bool own_parent = more && read_stream_id({head_.data() + FrameHead::kSize, kParent}) == frame.stream;
    visit(frame.type, own_parent ? 0 : frame.stream);
  }
  std::array<char, FrameHead::kSize + kParent> head_{};
  std::size_t have_ = 0;
  std::uint32_t skip_ = 0;  // bytes of a payload to skip
};

}  // namespace carpool::proxy::http
