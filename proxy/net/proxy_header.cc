#include "proxy/net/proxy_header.h"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/ascii.h"

namespace carpool::proxy::net {
namespace {

using HeaderState = ProxyHeader::State;
constexpr ProxyHeader kMalformed{HeaderState::malformed, 0, std::nullopt};
constexpr ProxyHeader kIncomplete{HeaderState::incomplete, 0, std::nullopt};

// ---- version 1: "PROXY TCP4 192.0.2.1 192.0.2.2 50000 443\r\n" ----

constexpr std::string_view kTextBegins = "PROXY ";
constexpr std::size_t kMaxLine = 107;  // with CR LF, by the specification

// Returns the address, which has its plain form: no brackets and no zone.
std::optional<Address> plain_address(std::string_view word, int family, std::uint16_t port) {
  const bool plain = word.find_first_not_of("0123456789abcdefABCDEF:.") == word.npos;
  const auto address = plain ? Address::literal(word, port) : std::nullopt;
  return address && address->family() == family ? address : std::nullopt;
}

std::optional<std::string_view> header_word(std::string_view& rest) {
  const std::size_t end = rest.find(' ');
  const std::string_view word = rest.substr(0, end);
  rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
  return word.empty() ? std::nullopt : std::optional(word);
}

ProxyHeader read_text(std::string_view bytes) {
  const std::size_t end = bytes.substr(0, kMaxLine).find("\r\n");
  if (end == bytes.npos) return bytes.size() < kMaxLine ? kIncomplete : kMalformed;
  std::string_view rest = bytes.substr(kTextBegins.size(), end - kTextBegins.size());
  const auto family = header_word(rest);
  const ProxyHeader whole{HeaderState::complete, end + 2, std::nullopt};
  if (family == "UNKNOWN") return whole;
  const auto source = header_word(rest), target = header_word(rest), from = header_word(rest), to = header_word(rest);
  if (!source || !target || !from || !to || !rest.empty()) return kMalformed;
  const auto port = number_in<std::uint16_t>(*from);
  if (!port || !number_in<std::uint16_t>(*to)) return kMalformed;
  const int wanted = family == "TCP4" ? AF_INET : family == "TCP6" ? AF_INET6 : AF_UNSPEC;
  const auto client = plain_address(*source, wanted, *port);
  if (!client || !plain_address(*target, wanted, *port)) return kMalformed;
  return {HeaderState::complete, end + 2, client};
}

// ---- version 2: a signature, version and command, family, length, addresses ----

constexpr std::string_view kSignature("\r\n\r\n\0\r\nQUIT\n", 12);
constexpr std::size_t kFixed = 16;
constexpr unsigned kVersion2 = 2, kLocal = 0, kProxy = 1;
constexpr unsigned kTcp4 = 0x11, kTcp6 = 0x21;
constexpr std::size_t kTcp4Bytes = 12, kTcp6Bytes = 36;

unsigned header_byte(std::string_view bytes, std::size_t at) {
  return static_cast<unsigned char>(bytes[at]);
}

Address client_of(std::string_view addresses, bool v6) {
  if (v6) {
    sockaddr_in6 in6{};
    in6.sin6_family = AF_INET6;
    std::memcpy(&in6.sin6_addr, addresses.data(), sizeof in6.sin6_addr);
    std::memcpy(&in6.sin6_port, addresses.data() + 2 * sizeof in6.sin6_addr, sizeof in6.sin6_port);
    return {reinterpret_cast<const sockaddr*>(&in6), sizeof in6};
  }
  sockaddr_in in{};
  in.sin_family = AF_INET;
  std::memcpy(&in.sin_addr, addresses.data(), sizeof in.sin_addr);
  std::memcpy(&in.sin_port, addresses.data() + 2 * sizeof in.sin_addr, sizeof in.sin_port);
  return {reinterpret_cast<const sockaddr*>(&in), sizeof in};
}

ProxyHeader read_binary(std::string_view bytes) {
  if (bytes.size() < kFixed) return kIncomplete;
  const unsigned version = header_byte(bytes, 12) >> 4, command = header_byte(bytes, 12) & 0x0F,
                 family = header_byte(bytes, 13);
  const std::size_t length = (header_byte(bytes, 14) << 8) + header_byte(bytes, 15), size = kFixed + length;
  if (version != kVersion2 || command > kProxy || size > ProxyHeader::kMaxSize) return kMalformed;
  const bool v4 = family == kTcp4, v6 = family == kTcp6;
  const bool named = command != kLocal && (v4 || v6);
  if (named && length < (v4 ? kTcp4Bytes : kTcp6Bytes)) return kMalformed;
  if (bytes.size() < size) return kIncomplete;
  if (!named) return {HeaderState::complete, size, std::nullopt};
  return {HeaderState::complete, size, client_of(bytes.substr(kFixed, length), v6)};
}

}  // namespace

ProxyHeader read_proxy_header(std::string_view bytes) {
  const auto begins = [&](std::string_view with) {
    const std::size_t common = std::min(bytes.size(), with.size());
    return bytes.substr(0, common) == with.substr(0, common);
  };
  if (begins(kSignature)) return read_binary(bytes);
  if (begins(kTextBegins)) return bytes.size() < kTextBegins.size() ? kIncomplete : read_text(bytes);
  return kMalformed;
}

}  // namespace carpool::proxy::net
