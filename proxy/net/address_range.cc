#include "proxy/net/address_range.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace carpool::proxy::net {
namespace {

using Bytes = std::array<std::uint8_t, 16>;

// Embedding: an IPv6 prefix whose addresses carry an IPv4 address.
struct Embedding {
  const char* prefix;
  std::size_t offset;
};
constexpr std::array<Embedding, 5> kEmbeddings{{
    {"::/96", 12},            // v4-compatible (RFC 4291)
    {"::ffff:0:0:0/96", 12},  // IPv4-translated (RFC 7915)
    {"64:ff9b::/96", 12},     // NAT64 (RFC 6052)
    {"64:ff9b:1::/48", 12},   // local-use NAT64 (RFC 8215), with the usual /96 in it
    {"2002::/16", 2},         // 6to4 (RFC 3056)
}};

constexpr std::array<const char*, 6> kProtected{
    "169.254.0.0/16",   // IPv4 link-local, with the metadata services of most clouds
    "fe80::/10",        // IPv6 link-local
    "fd00:ec2::254",    // AWS, instance metadata
    "fd00:ec2::23",     // AWS, EKS pod identity
    "fd20:ce::254",     // Google Cloud, instance metadata
    "100.100.100.200",  // Alibaba Cloud, instance metadata
};

constexpr std::string_view kUnixPrefix = "unix:";

config::EgressRule rule(const char* pattern) {
  auto parsed = config::EgressRule::parse(pattern);
  CARPOOL_ASSERT(parsed);
  return *parsed;
}

Address v4(const std::uint8_t* bytes, std::uint16_t port) {
  const auto text = std::to_string(bytes[0]) + "." + std::to_string(bytes[1]) + "." + std::to_string(bytes[2]) + "." +
                    std::to_string(bytes[3]);
  return *Address::literal(text, port);
}

Address plain(const Address& address) {
  const Address real = address.unmapped();
  if (!real.wildcard()) return real;
  return *Address::literal(real.family() == AF_INET ? "127.0.0.1" : "::1", real.port());
}

// A socket can be bound only to addresses of this machine. If the test itself fails, the address counts as local,
// because the result is used to deny access.
bool is_local(const Address& address) {
  if (address.loopback()) return true;
  const Fd probe(::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const Address anywhere = address.with_port(0);
  return !probe || ::bind(probe.get(), anywhere.get(), anywhere.length()) == 0;
}

// Compares the files themselves: a path has many spellings (links, `..`, other mounts).
bool same_socket_file(const Address& a, const Address& b) {
  if (a.host() == b.host()) return true;
  struct stat one {
  }, other{};
  const auto path_of = [](const Address& address) { return address.host().substr(kUnixPrefix.size()); };
  if (::stat(path_of(a).c_str(), &one) != 0 || ::stat(path_of(b).c_str(), &other) != 0) return false;
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

}  // namespace

Bytes rule_bytes(const Address& address) {
  Bytes out{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  const Address real = address.unmapped();
  const auto raw = real.bytes();
  CARPOOL_ASSERT(raw.size() == 4 || raw.size() == 16);
  std::memcpy(out.data() + (out.size() - raw.size()), raw.data(), raw.size());
  return out;
}

std::vector<Address> readings_of(const Address& address) {
  static const auto kRules = [] {
    std::array<config::EgressRule, kEmbeddings.size()> rules;
    std::transform(kEmbeddings.begin(), kEmbeddings.end(), rules.begin(), [](const auto& e) { return rule(e.prefix); });
    return rules;
  }();
  if (!address.ip()) return {address};
  std::vector<Address> out{plain(address)};
  if (out.front().family() != AF_INET6 || out.front().loopback()) return out;
  const Bytes bytes = rule_bytes(out.front());
  for (std::size_t i = 0; i < kRules.size(); ++i) {
    if (kRules[i].matches_address(bytes, address.port())) {
      out.push_back(plain(v4(bytes.data() + kEmbeddings[i].offset, address.port())));
    }
  }
  return out;
}

bool reaches(const Address& target, const Address& listener) {
  if (target.family() == AF_UNIX && listener.family() == AF_UNIX) return same_socket_file(target, listener);
  if (!target.ip()) return false;
  if (!listener.ip() || target.port() != listener.port()) return false;
  if (!listener.wildcard()) return target.same_host(listener);
  return is_local(target);
}

std::optional<config::EgressRule> protected_range(const Address& address) {
  static const auto kRules = [] {
    std::array<config::EgressRule, kProtected.size()> rules;
    std::transform(kProtected.begin(), kProtected.end(), rules.begin(), rule);
    return rules;
  }();
  if (!address.ip()) return std::nullopt;
  const Bytes bytes = rule_bytes(address);
  const auto at = std::find_if(kRules.begin(), kRules.end(),
                               [&](const auto& range) { return range.matches_address(bytes, address.port()); });
  if (at == kRules.end()) return std::nullopt;
  return *at;
}

}  // namespace carpool::proxy::net
