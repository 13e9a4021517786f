#include "proxy/net/dns/query.h"

#include <cstdint>
#include <utility>

#include "base/ascii.h"

namespace carpool::proxy::dns {
namespace {

// RFC 1035 §4.1.1
constexpr std::size_t kHeader = 12, kFlags = 2, kAnswers = 6;
constexpr std::uint8_t kResponse = 0x80, kTruncated = 0x02, kRcode = 0x0F;
// RFC 1035 §4.2.1. Queries announce no larger size, and c-ares ignores the bytes beyond it.
constexpr std::size_t kMaxDatagram = 512;
constexpr std::size_t kMaxName = 255, kMaxLabel = 63;

std::uint8_t byte_at(std::string_view bytes, std::size_t at) {
  return static_cast<std::uint8_t>(bytes[at]);
}

std::uint16_t number_at(std::string_view bytes, std::size_t at) {
  return static_cast<std::uint16_t>(byte_at(bytes, at) << 8U | byte_at(bytes, at + 1));
}

}  // namespace

std::optional<Answered> question_of(std::string_view datagram) {
  if (datagram.size() <= kHeader || (byte_at(datagram, kFlags) & kResponse) == 0) return std::nullopt;
  Answered out;
  out.truncated = (byte_at(datagram, kFlags) & kTruncated) != 0 || datagram.size() > kMaxDatagram;
  out.rcode = byte_at(datagram, kFlags + 1) & kRcode;
  out.has_answers = number_at(datagram, kAnswers) != 0;
  for (std::size_t at = kHeader; at < datagram.size() && out.name.size() <= kMaxName;) {
    const std::size_t length = byte_at(datagram, at++);
    if (length == 0 && out.name.empty()) break;
    if (length == 0) {
      out.type = at + 2 <= datagram.size() ? number_at(datagram, at) : std::uint16_t{0};
      return out;
    }
    if (length > kMaxLabel || at + length > datagram.size()) break;  // a question is never compressed
    if (!out.name.empty()) out.name += '.';
    for (const char c : datagram.substr(at, length)) out.name += ascii_lower(c);
    at += length;
  }
  return std::nullopt;
}

}  // namespace carpool::proxy::dns
