// Address: a socket address as a value; IPv4, IPv6 or a Unix socket.
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
  // Parses "127.0.0.1:80", "[::1]:80", "[fe80::1%eth0]:80", "unix:/path"; host names are rejected.
  static Result<Address> parse(std::string_view text);
  // Parses an IP address as in Origin.host ("127.0.0.1", "::1"; brackets are accepted); nullopt if `host` is a name.
  static std::optional<Address> literal(std::string_view host, std::uint16_t port);
  // Return the addresses of a socket's ends; empty if there is none.
  static Address local_of(int fd);
  static Address peer_of(int fd);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t length() const { return length_; }
  bool empty() const { return length_ == 0; }
  int family() const { return storage_.ss_family; }
  bool ip() const { return family() == AF_INET || family() == AF_INET6; }
  std::uint16_t port() const;
  Address with_port(std::uint16_t port) const;
  bool loopback() const;  // including v4-mapped addresses
  bool on_this_host() const { return family() == AF_UNIX || loopback(); }
  bool wildcard() const;
  // Returns the IPv4 address of a v4-mapped IPv6 address, otherwise the address itself: the one that the kernel uses.
  Address unmapped() const;
  // Returns the address bytes in network order: 4, 16 or none.
  std::string_view bytes() const&;
  std::string_view bytes() const&& = delete;  // the view would dangle
  std::string text() const;                   // in the format of parse()
  std::string host() const;                   // without the port, IPv6 without brackets
  // Returns true if the hosts are equal; a v4-mapped IPv6 address is compared as IPv4, and a link-local one whatever
  // its interface.
  bool same_host(const Address& other) const;
  // Returns true if the hosts have the same spelling, with the interface of a link-local one, and the ports are equal.
  friend bool operator==(const Address& a, const Address& b);

 private:
  sockaddr_storage storage_{};
  socklen_t length_ = 0;
};

// Adds `port` to the addresses without one.
std::vector<Address> with_default_port(std::vector<Address> addresses, std::uint16_t port);

}  // namespace carpool::proxy::net
