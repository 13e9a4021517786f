// TunnelInbox: what a client says on a stream that becomes a tunnel, in order: bytes, then the end. Nothing passes the
// inbox by: bytes and the end that come later wait behind those that came before the tunnel was there.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace carpool::proxy {

class TunnelInbox {
 public:
  // The window of the stream bounds the bytes.
  void add(std::string_view bytes) { bytes_.append(bytes); }
  void end() { ended_ = true; }
  bool empty() const { return bytes_.empty() && (!ended_ || end_told_); }

  std::string take_bytes() { return std::exchange(bytes_, {}); }
  // True once, behind the last byte.
  bool take_end() { return ended_ && bytes_.empty() && !std::exchange(end_told_, true); }

 private:
  std::string bytes_;
  bool ended_ = false;
  bool end_told_ = false;
};

}  // namespace carpool::proxy
