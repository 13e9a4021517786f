// A socket address as a value: IPv4, IPv6 or a Unix socket.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace carpool::proxy::net {

class Address {
 public:
  Address() = default;
  Address(const sockaddr* address, socklen_t length);
  // "127.0.0.1:80", "[::1]:80", "[fe80::1%eth0]:80", "unix:/path". No names.
  static Result<Address> parse(std::string_view text);
  // An IP address as Origin.host has it ("127.0.0.1", "::1"; brackets are fine too); nothing if it is a name.
  static std::optional<Address> literal(std::string_view host, std::uint16_t port);
  // The two ends of a socket; an empty Address when it has none.
  static Address local_of(int fd);
  static Address peer_of(int fd);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t length() const { return length_; }
  bool empty() const { return length_ == 0; }
  int family() const { return storage_.ss_family; }
  bool ip() const { return family() == AF_INET || family() == AF_INET6; }
  std::uint16_t port() const;
  Address with_port(std::uint16_t port) const;
  bool loopback() const;  // v4-mapped included
  bool wildcard() const;
  // IPv4 for a v4-mapped IPv6 address, itself otherwise: what the kernel really speaks to.
  Address unmapped() const;
  // The address's bytes in network order: 4, 16 or none.
  std::string_view bytes() const&;
  std::string_view bytes() const&& = delete;  // a view into what dies
  std::string text() const;                   // as parse() takes it
  std::string host() const;                   // without the port, IPv6 without brackets
  // Same host, v4-mapped IPv6 compared as IPv4.
  bool same_host(const Address& other) const;
  // Same host spelled the same way, same port.
  friend bool operator==(const Address& a, const Address& b);

 private:
  sockaddr_storage storage_{};
  socklen_t length_ = 0;
};

// Those without a port get this one.
std::vector<Address> with_default_port(std::vector<Address> addresses, std::uint16_t port);

}  // namespace carpool::proxy::net
