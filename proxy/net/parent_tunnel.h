// ParentTunnel: requests a tunnel to an origin from a parent proxy (CONNECT, RFC 9110 §9.3.6). The bytes that follow
// the response's head stay in the socket: they are the origin's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "pool/origin.h"

namespace carpool::proxy::net {

struct ParentProxy;

class ParentTunnel {
 public:
  ParentTunnel(const ParentProxy& parent, const pool::Origin& origin, std::string_view via);
  // Sends and reads as far as the socket permits. Returns true once the tunnel is open. Fault: parent_refused, or
  // loop_detected if the proxy says so.
  // `memory` bounds the response's head. `hangup`: no bytes follow those in the socket.
  Result<bool> step(int fd, std::span<char> memory, bool hangup);
  std::uint16_t status() const { return status_; }  // of the response; 0: none has arrived

 private:
  Status send(int fd);
  Result<bool> read_head(int fd, std::string_view arrived);
  Fault refused(std::string why) const;
  Fault refusal(std::string_view reason) const;

  const ParentProxy& parent_;
  const std::string target_;  // "host:port"
  std::string request_;       // the unsent part
  std::uint16_t status_ = 0;
  std::uint8_t interim_ = 0;  // 1xx heads that were read
};

}  // namespace carpool::proxy::net
