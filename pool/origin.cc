// Normalization of origins. Two spellings of one origin must never make two pools (the cap would be exceeded), and two
// origins never one (a request would reach the wrong host). A host has one canonical spelling; one without is refused:
//   names  lower-case A-labels without trailing dot: percent-decoded once, then UTS 46 (non-transitional) if not ASCII;
//   IPv4   dotted decimal. A name whose last label is a number is an address by inet_aton's rules, as in browsers
//          (127.1, 0x7f.1, 2130706433), because getaddrinfo reads it so too: no spelling bypasses an address rule;
//   IPv6   as inet_ntop writes it. A v4-mapped address is kept: a certificate names 16 bytes or 4, so [::ffff:a.b.c.d]
//          has another TLS identity than a.b.c.d. Address rules treat both as equal.
#include "pool/origin.h"

#include <arpa/inet.h>
#include <idn2.h>

#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <string>

#include "base/ascii.h"
#include "base/utf8.h"

namespace carpool::pool {
namespace {

constexpr std::size_t kMaxName = 253;  // RFC 1035: 255 on the wire
constexpr std::size_t kMaxLabel = 63;

bool digit(char c) {
  return c >= '0' && c <= '9';
}

// Letters, digits, hyphen, dot, and the underscore used by names in private zones. No other byte resolves, and labels
// are written to logs, metrics and paths without escaping.
constexpr std::array<bool, 256> kNameByte = [] {
  std::array<bool, 256> table{};
  for (unsigned c = 'a'; c <= 'z'; ++c) table[c] = true;
  for (unsigned c = '0'; c <= '9'; ++c) table[c] = true;
  for (const char c : {'-', '_', '.'}) table[static_cast<unsigned char>(c)] = true;
  return table;
}();

bool plain(std::string_view host) {
  for (const char c : host) {
    if (!kNameByte[static_cast<unsigned char>(c)]) return false;
  }
  return true;
}

// Returns true if the last label is a number: the host is then an IPv4 address or invalid.
bool ends_in_number(std::string_view host) {
  std::string_view last = host.substr(host.rfind('.') + 1);  // npos + 1 == 0
  if (last.empty() || !digit(last.front())) return false;
  const bool hex = last.size() >= 2 && last[0] == '0' && last[1] == 'x';
  if (hex) last.remove_prefix(2);
  for (const char c : last) {
    if (hex ? hex_value(c) < 0 : !digit(c)) return false;
  }
  return true;
}

// Parses one part of an address: decimal, octal after "0", hexadecimal after "0x".
std::optional<std::uint64_t> ipv4_part(std::string_view part) {
  if (part.empty()) return std::nullopt;
  int base = 10;
  if (part.size() >= 2 && part[0] == '0' && part[1] == 'x') {
    base = 16;
    part.remove_prefix(2);
  } else if (part.size() >= 2 && part[0] == '0') {
    base = 8;
    part.remove_prefix(1);
  }
  std::uint64_t value = 0;
  for (const char c : part) {
    const int d = hex_value(c);
    if (d < 0 || d >= base) return std::nullopt;
    value = value * static_cast<unsigned>(base) + static_cast<unsigned>(d);
    if (value > 0xFFFFFFFF) return std::nullopt;
  }
  return value;
}

// inet_ntop uses printf; this runs for every request to an address literal.
std::string dotted(std::uint32_t address) {
  char text[INET_ADDRSTRLEN];
  char* end = text;
  for (int shift = 24; shift >= 0; shift -= 8) {
    end = std::to_chars(end, text + sizeof text, (address >> shift) & 0xFF).ptr;
    *end++ = '.';
  }
  return {text, end - 1};
}

// inet_aton's rules: one to four parts, the last one fills the remaining bytes.
bool ipv4(std::string_view host, std::string& out) {
  std::uint64_t address = 0;
  for (unsigned parts = 1;; ++parts) {
    const std::size_t dot = host.find('.');
    const auto value = ipv4_part(host.substr(0, dot));
    if (!value) return false;
    if (dot == std::string_view::npos) {
      if (*value >> (8 * (5 - parts)) != 0) return false;
      address |= *value;
      break;
    }
    if (parts == 4 || *value > 255) return false;
    address |= *value << (8 * (4 - parts));
    host.remove_prefix(dot + 1);
  }
  out = dotted(static_cast<std::uint32_t>(address));
  return true;
}

bool ipv6(std::string_view host, std::string& out) {
  char text[INET6_ADDRSTRLEN];
  if (host.size() >= sizeof text || host.find('\0') != std::string_view::npos) return false;
  text[host.copy(text, sizeof text - 1)] = '\0';
  in6_addr address;
  if (inet_pton(AF_INET6, text, &address) != 1) return false;
  out = inet_ntop(AF_INET6, &address, text, sizeof text);
  return true;
}

// `host` is percent-decoded. Returns an empty string if it is valid, otherwise the error.
std::string_view check_name(std::string_view host) {
  if (host.empty()) return "the host is empty";
  if (host.size() > kMaxName) return "the host is longer than 253 bytes";
  std::size_t start = 0;
  while (start <= host.size()) {
    std::size_t dot = host.find('.', start);
    if (dot == std::string_view::npos) dot = host.size();
    if (dot == start) return "the host has an empty label";
    if (dot - start > kMaxLabel) return "the host has a label longer than 63 bytes";
    start = dot + 1;
  }
  return {};
}

// `host` is percent-decoded: a name or an IPv4 address.
std::string_view finish(std::string_view host, std::string& out) {
  if (!host.empty() && host.back() == '.') host.remove_suffix(1);
  if (const auto error = check_name(host); !error.empty()) return error;
  if (ends_in_number(host)) return ipv4(host, out) ? "" : "the host ends in a number but is not an IPv4 address";
  out = host;
  return {};
}

// Decodes once: a name that is still escaped afterwards is invalid.
bool percent_decode(std::string_view host, std::string& out) {
  for (std::size_t i = 0; i < host.size(); ++i) {
    if (host[i] != '%') {
      out += ascii_lower(host[i]);
      continue;
    }
    const int high = i + 2 < host.size() ? hex_value(host[i + 1]) : -1;
    const int low = high < 0 ? -1 : hex_value(host[i + 2]);
    if (low < 0) return false;
    out += ascii_lower(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return true;
}

// UTS 46, for names that are not ASCII.
bool to_ascii(std::string& host) {
  // libidn2 reads up to the first NUL; a longer host cannot be short enough in ASCII.
  if (host.find('\0') != std::string::npos || host.size() > 4 * kMaxName) return false;
  char* made = nullptr;
  if (idn2_to_ascii_8z(host.c_str(), &made, IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL) != IDN2_OK) return false;
  const std::unique_ptr<char, decltype(&idn2_free)> owned(made, &idn2_free);
  host = made;
  return true;
}

std::string_view canonical_name(std::string_view host, std::string& out) {
  if (plain(host)) return finish(host, out);
  if (host.size() > 12 * kMaxName) return "the host is longer than 253 bytes";
  std::string decoded;
  decoded.reserve(host.size());
  if (!percent_decode(host, decoded)) return "the host has a broken percent-encoding";
  bool ascii = true;
  for (const char c : decoded) ascii = ascii && static_cast<unsigned char>(c) < 0x80;
  if (!ascii && !to_ascii(decoded)) return "the host is not a valid internationalized name";
  if (!plain(decoded)) return "the host has a character that is not allowed in a name";
  return finish(decoded, out);
}

// Leading zeros are ignored; an empty port is the scheme's default.
std::string_view canonical_port(std::string_view text, Scheme scheme, std::uint16_t& out) {
  std::uint32_t value = 0;
  for (const char c : text) {
    if (!digit(c)) return "the port is not a number";
    value = value * 10 + static_cast<std::uint32_t>(c - '0');
    if (value > 65535) return "the port is greater than 65535";
  }
  if (text.empty()) value = default_port(scheme);
  if (value == 0) return text.empty() ? "the port is missing" : "the port is 0";
  out = static_cast<std::uint16_t>(value);
  return {};
}

// Splits host and port and normalizes the host; `port` follows the colon.
std::string_view split(std::string_view authority, std::string& host, std::string_view& port) {
  if (!authority.empty() && authority.front() == '[') {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return "the IPv6 address has no closing bracket";
    if (!ipv6(authority.substr(1, end - 1), host))
      return "the text in brackets is not an IPv6 address (zone identifiers are not supported)";
    port = authority.substr(end + 1);
    if (port.empty()) return {};
    if (port.front() != ':') return "something other than a port follows the IPv6 address";
    port.remove_prefix(1);
    return {};
  }
  const std::size_t colon = authority.find(':');
  if (colon != std::string_view::npos) {
    port = authority.substr(colon + 1);
    if (port.find('@') != std::string_view::npos) return "userinfo before the host is not allowed";
    if (port.find(':') != std::string_view::npos) return "there is more than one colon (IPv6 needs brackets)";
  }
  return canonical_name(authority.substr(0, colon), host);
}

// Userinfo is masked up to the last `@`, because a password may contain every other delimiter; so is a query.
Fault malformed(std::string_view error, std::string_view text) {
  constexpr std::size_t kShown = 80;
  const std::size_t at = text.rfind('@');
  std::string what = at == std::string_view::npos ? std::string(text) : "***" + std::string(text.substr(at));
  if (const std::size_t query = what.find('?'); query != std::string::npos) what.replace(query + 1, what.size(), "***");
  std::string detail(error);
  detail.append(": `").append(clipped(what, kShown)).append(what.size() > kShown ? "…`" : "`");
  return {FaultKind::malformed_request, Side::client, std::move(detail)};
}

bool starts_with_no_case(std::string_view text, std::string_view prefix) {
  if (text.size() < prefix.size()) return false;
  for (std::size_t i = 0; i < prefix.size(); ++i) {
    if (ascii_lower(text[i]) != prefix[i]) return false;
  }
  return true;
}

}  // namespace

std::string_view name(Scheme scheme) {
  constexpr std::array<std::string_view, 3> kNames{"http", "https", "tcp"};
  return kNames[static_cast<std::size_t>(scheme)];
}

std::uint16_t default_port(Scheme scheme) {
  constexpr std::array<std::uint16_t, 3> kPorts{80, 443, 0};
  return kPorts[static_cast<std::size_t>(scheme)];
}

std::string Origin::authority() const {
  const bool v6 = host.find(':') != std::string::npos;
  std::string text = v6 ? '[' + host + ']' : host;
  if (port != default_port(scheme)) text.append(1, ':').append(std::to_string(port));
  return text;
}

std::string Origin::label() const {
  return std::string(name(scheme)).append("://").append(authority());
}

bool Origin::is_ip_literal() const {
  return host.find(':') != std::string::npos || ends_in_number(host);
}

Result<Origin> canonical_origin(Scheme scheme, std::string_view authority) {
  Origin origin;
  origin.scheme = scheme;
  std::string_view port;
  if (const auto error = split(authority, origin.host, port); !error.empty()) return malformed(error, authority);
  if (const auto error = canonical_port(port, scheme, origin.port); !error.empty()) return malformed(error, authority);
  return origin;
}

Result<Origin> parse_origin(std::string_view uri) {
  for (const Scheme scheme : {Scheme::http, Scheme::https, Scheme::tcp}) {
    const std::string_view word = name(scheme);
    if (!starts_with_no_case(uri, word)) continue;
    std::string_view rest = uri.substr(word.size());
    if (!rest.starts_with("://")) continue;
    rest.remove_prefix(3);
    if (rest.ends_with('/')) rest.remove_suffix(1);
    if (rest.find_first_of("/?#") != std::string_view::npos) return malformed("an origin must not have a path", uri);
    return canonical_origin(scheme, rest);
  }
  return malformed("an origin must start with http://, https:// or tcp://", uri);
}

}  // namespace carpool::pool
