#include "proxy/net/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "base/ascii.h"

namespace carpool::proxy::net {
namespace {

// Reads sockaddr_storage as one of its concrete types; memcpy avoids aliasing problems.
template <class T>
T as(const sockaddr* address) {
  T out;
  std::memcpy(&out, address, sizeof out);
  return out;
}

constexpr std::array<unsigned char, 12> kMappedPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool is_mapped(const in6_addr& a) {
  return std::memcmp(&a, kMappedPrefix.data(), kMappedPrefix.size()) == 0;
}

// A link-local address names another host on each interface. The kernel ignores the scope of all other addresses.
std::uint32_t scope_of(const Address& address) {
  if (address.family() != AF_INET6) return 0;
  const auto in6 = as<sockaddr_in6>(address.get());
  return IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr) ? in6.sin6_scope_id : 0;
}

Address make_v4(const void* bytes, std::uint16_t port) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  std::memcpy(&in.sin_addr, bytes, sizeof in.sin_addr);
  return {reinterpret_cast<const sockaddr*>(&in), sizeof in};
}

Result<Address> make_unix(std::string_view path) {
  sockaddr_un un{};
  un.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof un.sun_path) {
    return Fault(FaultKind::malformed_request, Side::self, "a Unix socket's path has 1 to 107 bytes");
  }
  std::copy(path.begin(), path.end(), un.sun_path);
  const auto length = offsetof(sockaddr_un, sun_path) + path.size() + 1;
  return Address(reinterpret_cast<const sockaddr*>(&un), static_cast<socklen_t>(length));
}

Fault not_an_address(std::string_view text) {
  return {FaultKind::malformed_request, Side::self,
          "\"" + std::string(text) + "\" is not an address: expected IPV4:PORT, [IPV6]:PORT or unix:/PATH"};
}

}  // namespace

Address::Address(const sockaddr* address, socklen_t length) : length_(std::min<socklen_t>(length, sizeof storage_)) {
  std::memcpy(&storage_, address, length_);
}

std::optional<Address> Address::literal(std::string_view host, std::uint16_t port) {
  if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.find('\0') != host.npos) return std::nullopt;  // the functions below would read the text before it alone
  const auto percent = host.find('%');
  const std::string ip(host.substr(0, percent));
  in_addr v4{};
  if (percent == host.npos && inet_pton(AF_INET, ip.c_str(), &v4) == 1) return make_v4(&v4, port);
  sockaddr_in6 in6{};
  if (inet_pton(AF_INET6, ip.c_str(), &in6.sin6_addr) != 1) return std::nullopt;
  in6.sin6_family = AF_INET6;
  in6.sin6_port = htons(port);
  if (percent != host.npos) {
    in6.sin6_scope_id = if_nametoindex(std::string(host.substr(percent + 1)).c_str());
    if (in6.sin6_scope_id == 0) return std::nullopt;
  }
  return Address(reinterpret_cast<const sockaddr*>(&in6), sizeof in6);
}

Result<Address> Address::parse(std::string_view text) {
  if (text.starts_with("unix:")) return make_unix(text.substr(5));
  const auto colon = text.rfind(':');
  if (colon == text.npos || colon == 0) return not_an_address(text);
  const auto host = text.substr(0, colon), digits = text.substr(colon + 1);
  const bool bracketed = host.front() == '[' && host.back() == ']';
  if (bracketed != (host.find(':') != host.npos)) return not_an_address(text);
  const auto port = number_in<std::uint16_t>(digits);
  auto address = port ? literal(host, *port) : std::nullopt;
  if (!address) return not_an_address(text);
  return *address;
}

Address Address::local_of(int fd) {
  Address out;
  socklen_t length = sizeof out.storage_;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&out.storage_), &length) == 0) out.length_ = length;
  return out;
}

Address Address::peer_of(int fd) {
  Address out;
  socklen_t length = sizeof out.storage_;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&out.storage_), &length) == 0) out.length_ = length;
  return out;
}

std::uint16_t Address::port() const {
  if (family() == AF_INET) return ntohs(as<sockaddr_in>(get()).sin_port);
  if (family() == AF_INET6) return ntohs(as<sockaddr_in6>(get()).sin6_port);
  return 0;
}

Address Address::with_port(std::uint16_t port) const {
  Address out = *this;
  // sin_port and sin6_port have the same offset.
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  const std::uint16_t wire = htons(port);
  if (ip()) std::memcpy(reinterpret_cast<char*>(&out.storage_) + offsetof(sockaddr_in, sin_port), &wire, sizeof wire);
  return out;
}

std::string_view Address::bytes() const& {
  const auto* base = reinterpret_cast<const char*>(&storage_);
  if (family() == AF_INET) return {base + offsetof(sockaddr_in, sin_addr), 4};
  if (family() == AF_INET6) return {base + offsetof(sockaddr_in6, sin6_addr), 16};
  return {};
}

Address Address::unmapped() const {
  if (family() != AF_INET6) return *this;
  const auto in6 = as<sockaddr_in6>(get());
  if (!is_mapped(in6.sin6_addr)) return *this;
  return make_v4(bytes().data() + kMappedPrefix.size(), port());
}

bool Address::loopback() const {
  const Address real = unmapped();
  if (real.family() == AF_INET) return real.bytes()[0] == 127;
  if (real.family() != AF_INET6) return false;
  const auto in6 = as<sockaddr_in6>(real.get());
  return IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
}

bool Address::wildcard() const {
  const Address real = unmapped();
  const auto raw = real.bytes();
  return !raw.empty() && std::all_of(raw.begin(), raw.end(), [](char c) { return c == 0; });
}

std::string Address::host() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (ip()) return inet_ntop(family(), bytes().data(), text.data(), text.size());
  if (family() != AF_UNIX) return {};
  const auto prefix = offsetof(sockaddr_un, sun_path);
  if (length_ <= prefix) return "unix:";
  const auto un = as<sockaddr_un>(get());
  return "unix:" + std::string(un.sun_path, strnlen(un.sun_path, length_ - prefix));
}

std::string Address::text() const {
  if (family() == AF_INET) return host() + ":" + std::to_string(port());
  if (family() != AF_INET6) return host();
  std::array<char, IF_NAMESIZE> name{};
  const auto scope = as<sockaddr_in6>(get()).sin6_scope_id;
  const bool named = scope != 0 && if_indextoname(scope, name.data()) != nullptr;
  return "[" + host() + (named ? "%" + std::string(name.data()) : "") + "]:" + std::to_string(port());
}

bool Address::same_host(const Address& other) const {
  const Address a = unmapped(), b = other.unmapped();
  if (a.family() != b.family()) return false;
  return a.ip() ? a.bytes() == b.bytes() : a.host() == b.host();
}

bool operator==(const Address& a, const Address& b) {
  if (a.family() != b.family() || a.port() != b.port() || scope_of(a) != scope_of(b)) return false;
  return a.ip() ? a.bytes() == b.bytes() : a.host() == b.host();
}

std::vector<Address> with_default_port(std::vector<Address> addresses, std::uint16_t port) {
  for (Address& address : addresses) {
    if (address.port() == 0) address = address.with_port(port);
  }
  return addresses;
}

}  // namespace carpool::proxy::net
