// Makes the GOAWAY frames of a peer acceptable to the library, which ends the session over a last stream identifier
// that rises (RFC 9113 §6.8 forbids raising it) or that cannot be one of ours.
//
// Origins that process many requests at once do raise it, and their first GOAWAY remains valid: streams up to it are
// answered, later ones are retried elsewhere. Therefore a frame that raises it is removed, and the lower identifier
// stays in effect. An even identifier stands for the stream below it.
//
// A server has no streams of its own, so the identifier of a client means nothing to it. Some clients announce their
// end with the highest one, as servers do, and wait for the responses to come. It becomes 0.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "proxy/http/h2/frame_header.h"
#include "proxy/http/h2/types.h"

namespace carpool::proxy::http {

class GoawayFilter {
 public:
  // The preface of a client is no frame.
  explicit GoawayFilter(H2Role ours)
      : of_client_(ours == H2Role::server), body_left_(of_client_ ? kH2Preface.size() : 0) {}
  // Calls pass(bytes) for the bytes that are kept, in order; runs without a GOAWAY are passed as a whole.
  template <class Pass>
  void filter(std::string_view bytes, Pass pass) {
    std::size_t run = 0, at = 0;  // bytes[run, at) is kept, but was not passed yet
    const auto pass_run = [&] {
      if (at > run) pass(bytes.substr(run, at - run));
      run = at;
    };
    while (at < bytes.size()) {
      if (body_left_ > 0) {
        const std::size_t size = std::min(body_left_, bytes.size() - at);
        body_left_ -= size;
        at += size;
        if (dropping_) run = at;
        continue;
      }
      dropping_ = false;
      if (held_size_ == 0 && bytes.size() - at >= FrameHead::kSize) {
        const FrameHead frame = FrameHead::read(bytes.substr(at));
        if (!is_goaway(frame)) {
          body_left_ = frame.length;
          at += FrameHead::kSize;
          continue;
        }
      }
      if (held_size_ == 0) pass_run();
      held_[held_size_++] = bytes[at++];
      run = at;
      if (keep_frame()) pass(std::string_view(held_.data(), std::exchange(held_size_, 0)));
    }
    pass_run();
  }

 private:
  static constexpr std::size_t kLast = 4;  // the size of the identifier
  static constexpr std::size_t kGoaway = FrameHead::kSize + 8;
  static bool is_goaway(const FrameHead& frame) {
    return frame.type == FrameHead::goaway && frame.length >= kGoaway - FrameHead::kSize;
  }
  // Returns the last stream of ours that `last` includes.
  std::uint32_t last_of_ours(std::uint32_t last) const {
    if (of_client_) return 0;
    return last - (last != 0 && last % 2 == 0 ? 1 : 0);
  }
  void write_last(std::uint32_t last) {
    for (std::size_t i = 0; i < kLast; ++i)
      held_[FrameHead::kSize + i] = static_cast<char>(last >> (8 * (kLast - 1 - i)));
  }
  // Judges the buffered frame header, as far as it arrived. Returns true if the frame is kept.
  bool keep_frame() {
    const std::string_view held(held_.data(), held_size_);
    if (held.size() < FrameHead::kSize) return false;
    const FrameHead frame = FrameHead::read(held);
    const bool goaway = is_goaway(frame);
    if (goaway && held.size() < kGoaway) return false;
    body_left_ = frame.length - (held.size() - FrameHead::kSize);
    if (!goaway) return true;
    const std::uint32_t last = last_of_ours(read_stream_id(held.substr(FrameHead::kSize)));
    write_last(last);
    dropping_ = last > lowest_;
    if (dropping_) held_size_ = 0;
    lowest_ = std::min(lowest_, last);
    return !dropping_;
  }

  bool of_client_;
  std::size_t body_left_;
  std::array<char, kGoaway> held_{};
  std::size_t held_size_ = 0;
  std::uint32_t lowest_ = 0x7FFFFFFFU;
  bool dropping_ = false;
};

}  // namespace carpool::proxy::http
