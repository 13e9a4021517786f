#include "proxy/net/dns/query.h"

#include <cstdint>
#include <utility>

#include "base/ascii.h"

namespace carpool::proxy::dns {
namespace {

// RFC 1035 §4.1.1
constexpr std::size_t kHeader = 12, kFlags = 2;
constexpr std::uint8_t kResponse = 0x80, kTruncated = 0x02;
constexpr std::size_t kMaxName = 255, kMaxLabel = 63;

std::uint8_t byte_at(std::string_view bytes, std::size_t at) {
  return static_cast<std::uint8_t>(bytes[at]);
}

}  // namespace

std::optional<Answered> question_of(std::string_view datagram) {
  if (datagram.size() <= kHeader || (byte_at(datagram, kFlags) & kResponse) == 0) return std::nullopt;
  Answered out;
  out.truncated = (byte_at(datagram, kFlags) & kTruncated) != 0;
  for (std::size_t at = kHeader; at < datagram.size() && out.name.size() <= kMaxName;) {
    const std::size_t length = byte_at(datagram, at++);
    if (length == 0) return out.name.empty() ? std::nullopt : std::optional(std::move(out));
    if (length > kMaxLabel || at + length > datagram.size()) break;  // a question is never compressed
    if (!out.name.empty()) out.name += '.';
    for (const char c : datagram.substr(at, length)) out.name += ascii_lower(c);
    at += length;
  }
  return std::nullopt;
}

}  // namespace carpool::proxy::dns
