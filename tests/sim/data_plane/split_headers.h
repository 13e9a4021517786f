// SplitHeaders: cuts header blocks into CONTINUATION frames, as some peers do.
#pragma once

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace carpool::test {

// Appends a frame. The block of a HEADERS frame without padding and priority is cut into pieces of `most` bytes, at
// most 255; 0: it is not cut. Returns the number of CONTINUATION frames.
inline std::size_t append_split(std::string& out, std::string_view frame, std::size_t most) {
  const std::size_t size = frame.size() - std::min<std::size_t>(frame.size(), 9);
  if (most == 0 || frame.size() < 9 || frame[3] != NGHTTP2_HEADERS || size <= most) {
    out.append(frame);
    return 0;
  }
  const std::string_view block = frame.substr(9);
  for (std::size_t at = 0; at < size; at += most) {
    const std::string_view piece = block.substr(at, most);
    const int first = at == 0 ? frame[4] & ~NGHTTP2_FLAG_END_HEADERS : 0;
    const int flags = first | (at + most >= size ? NGHTTP2_FLAG_END_HEADERS : 0);
    const char head[] = {0, 0, static_cast<char>(piece.size()), static_cast<char>(at == 0 ? 1 : NGHTTP2_CONTINUATION),
                         static_cast<char>(flags)};
    out.append(head, sizeof head).append(frame.substr(5, 4)).append(piece);
  }
  return (size - 1) / most;
}

}  // namespace carpool::test
