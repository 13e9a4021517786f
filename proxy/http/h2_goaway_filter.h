// Takes GOAWAY frames that raise the last stream out of an origin's bytes. RFC 9113 §6.8 forbids to raise it, and the
// library ends the session over it; but origins that answer many requests at once do it, and what their first GOAWAY
// promised still holds: streams below it are answered, those above go elsewhere. So the lower word stands.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace carpool::proxy::http {

class GoawayFilter {
 public:
  // Calls pass(bytes) with what goes on, in order; whole runs where no GOAWAY is among them.
  template <class Pass>
  void filter(std::string_view bytes, Pass pass) {
    std::size_t run = 0, at = 0;  // bytes[run, at) goes on, but was not passed yet
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
      if (held_size_ == 0 && bytes.size() - at >= kHead && !is_goaway(bytes.substr(at))) {
        body_left_ = length_of(bytes.substr(at));
        at += kHead;
        continue;
      }
      if (held_size_ == 0) pass_run();
      held_[held_size_++] = bytes[at++];
      run = at;
      if (judge()) pass(std::string_view(held_.data(), std::exchange(held_size_, 0)));
    }
    pass_run();
  }

 private:
  static constexpr std::size_t kHead = 9, kLast = 4, kGoaway = kHead + 8;
  static std::uint32_t byte(std::string_view bytes, std::size_t at) { return static_cast<unsigned char>(bytes[at]); }
  static std::size_t length_of(std::string_view head) {
    return byte(head, 0) << 16 | byte(head, 1) << 8 | byte(head, 2);
  }
  static bool is_goaway(std::string_view head) { return byte(head, 3) == 7 && length_of(head) >= kGoaway - kHead; }
  // Of the head that is held, as far as it came. True: it goes on.
  bool judge() {
    const std::string_view held(held_.data(), held_size_);
    if (held.size() < kHead) return false;
    const bool goaway = is_goaway(held);
    if (goaway && held.size() < kGoaway) return false;
    body_left_ = length_of(held) - (held.size() - kHead);
    if (!goaway) return true;
    std::uint32_t last = 0;
    for (std::size_t i = 0; i < kLast; ++i) last = last << 8 | byte(held, kHead + i);
    last &= 0x7FFFFFFFU;
    dropping_ = last > lowest_;
    if (dropping_) held_size_ = 0;
    lowest_ = std::min(lowest_, last);
    return !dropping_;
  }

  std::array<char, kGoaway> held_{};
  std::size_t held_size_ = 0;
  std::size_t body_left_ = 0;
  std::uint32_t lowest_ = 0x7FFFFFFFU;
  bool dropping_ = false;
};

}  // namespace carpool::proxy::http
