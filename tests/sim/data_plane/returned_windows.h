// ReturnedWindows: the option of a scripted HTTP/2 peer that returns each byte to its windows itself, by
// nghttp2_session_consume(). nghttp2's automatic updates do not suit a peer that makes its windows smaller: while an
// update is queued, they take bytes that came within the larger window for an overdraft, and reset the stream.
#pragma once

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstdint>

namespace carpool::test {

class ReturnedWindows {
 public:
  ReturnedWindows() {
    nghttp2_option_new(&option_);
    nghttp2_option_set_no_auto_window_update(option_, 1);
  }
  ReturnedWindows(const ReturnedWindows&) = delete;
  ReturnedWindows& operator=(const ReturnedWindows&) = delete;
  ~ReturnedWindows() { nghttp2_option_del(option_); }
  const nghttp2_option* get() const { return option_; }

 private:
  nghttp2_option* option_ = nullptr;
};

// Enlarges the window of a peer's connection, which SETTINGS do not affect; 0: leaves it.
inline void widen(nghttp2_session* session, std::uint32_t window) {
  if (window == 0) return;
  const auto most = static_cast<std::int32_t>(std::min(window, 1U << 30));
  nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, most);
}

}  // namespace carpool::test
