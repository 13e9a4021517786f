// TunnelInbox: buffers the bytes that a client sends before its request is dispatched, and on a stream that becomes a
// tunnel also those before the tunnel is established, and then the end. All bytes of a tunnel pass through the inbox,
// so later data cannot overtake them.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace carpool::proxy {

class TunnelInbox {
 public:
  // Adds bytes; the stream's window limits their number.
  void add(std::string_view bytes) { bytes_.append(bytes); }
  void end() { ended_ = true; }
  bool empty() const { return bytes_.empty() && (!ended_ || eof_delivered_); }

  std::string take_bytes() { return std::exchange(bytes_, {}); }
  // Returns true once, after the last byte was taken.
  bool take_end() { return ended_ && bytes_.empty() && !std::exchange(eof_delivered_, true); }

 private:
  std::string bytes_;
  bool ended_ = false;
  bool eof_delivered_ = false;
};

}  // namespace carpool::proxy
