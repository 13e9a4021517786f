#include "proxy/net/tls/client_hello.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace carpool::proxy::tls {
namespace {

// RFC 8446 §5.1 and §4.
constexpr unsigned kHandshakeRecord = 22, kMajorVersion = 3, kClientHello = 1;
constexpr std::size_t kMaxRecord = 1U << 14U;
// RFC 8446 §4.1.2.
constexpr std::size_t kRandom = 32;
// RFC 6066 §3, RFC 7301 §3.1 and RFC 8446 §4.2.1.
constexpr unsigned kServerName = 0, kProtocols = 16, kVersions = 43, kHostName = 0, kTls12 = 0x0303, kTls13 = 0x0304;
// RFC 8446 §4.2.3, §4.2.7 and §B.4, RFC 5289 §3.2 and RFC 7905 §3: what ServerContext accepts with a P-256 key.
constexpr unsigned kGroups = 10, kSignatures = 13;
constexpr std::array<std::size_t, 3> kSuites13{0x1301, 0x1302, 0x1303};
constexpr std::array<std::size_t, 3> kSuites12{0xC02B, 0xC02C, 0xCCA9};
constexpr std::array<std::size_t, 1> kSignatures13{0x0403};
constexpr std::array<std::size_t, 3> kSignatures12{0x0403, 0x0503, 0x0603};
constexpr std::array<std::size_t, 3> kCurves{29, 23, 24};

// Reads numbers and vectors of the presentation language (RFC 8446 §3). After a read beyond the end all are empty.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : left_(bytes) {}
  bool empty() const { return left_.empty(); }
  bool broken() const { return broken_; }
  std::string_view rest() const { return left_; }
  std::size_t number(std::size_t bytes) {
    std::size_t value = 0;
    for (const char byte : take(bytes)) value = (value << 8U) + static_cast<unsigned char>(byte);
    return value;
  }
  std::string_view list(std::size_t bytes_of_length) { return take(number(bytes_of_length)); }
  std::string_view take(std::size_t size) {
    broken_ |= size > left_.size();
    if (broken_) left_ = {};
    const std::string_view taken = left_.substr(0, broken_ ? 0 : size);
    left_.remove_prefix(taken.size());
    return taken;
  }

 private:
  std::string_view left_;
  bool broken_ = false;
};

void read_name(std::string_view bytes, ClientHello& hello) {
  Fields names(Fields(bytes).list(2));
  while (!names.empty()) {
    const std::size_t type = names.number(1);
    const std::string_view name = names.list(2);
    if (type == kHostName && hello.server_name.empty()) hello.server_name = name;
  }
}

void read_protocols(std::string_view bytes, ClientHello& hello) {
  hello.offers_protocols |= !bytes.empty();
  Fields protocols(Fields(bytes).list(2));
  while (!protocols.empty()) {
    const std::string_view protocol = protocols.list(1);
    hello.offers_h1 |= protocol == "http/1.1";
    hello.offers_h2 |= protocol == "h2";
  }
}

// Offer: lists of numbers of two bytes. Without an extension its list is absent, and TLS 1.2 has defaults.
struct Offer {
  std::size_t version = 0;  // the highest one, where there is no list of versions
  std::string_view suites;
  std::optional<std::string_view> versions, signatures, groups;
};

template <std::size_t kCount>
bool has_one_of(const std::array<std::size_t, kCount>& wanted, std::string_view list) {
  for (Fields numbers(list); !numbers.empty();) {
    const std::size_t number = numbers.number(2);
    if (!numbers.broken() && std::find(wanted.begin(), wanted.end(), number) != wanted.end()) return true;
  }
  return false;
}

template <std::size_t kCount>
bool may_have_one_of(const std::array<std::size_t, kCount>& wanted, const std::optional<std::string_view>& list) {
  return !list || has_one_of(wanted, *list);
}

bool suits_p256(const Offer& offer, bool tls13) {
  if (!may_have_one_of(kCurves, offer.groups)) return false;
  if (tls13) return has_one_of(kSuites13, offer.suites) && may_have_one_of(kSignatures13, offer.signatures);
  const bool tls12 =
      offer.versions ? has_one_of(std::array<std::size_t, 1>{kTls12}, *offer.versions) : offer.version >= kTls12;
  return tls12 && has_one_of(kSuites12, offer.suites) && may_have_one_of(kSignatures12, offer.signatures);
}

// FNV-1a. RFC 8701 §2: the random values are 0x0A0A, 0x1A1A and so on.
std::uint64_t suites_of(std::string_view bytes) {
  constexpr std::uint64_t kBasis = 0xCBF2'9CE4'8422'2325, kPrime = 0x100'0000'01B3;
  std::uint64_t digest = kBasis;
  for (Fields suites(bytes); !suites.empty();) {
    const std::uint64_t suite = suites.number(2);
    if ((suite & 0x0F0FU) == 0x0A0AU && (suite >> 8U) == (suite & 0xFFU)) continue;
    digest = (digest ^ suite) * kPrime;
  }
  return digest;
}

// Returns false if the body of the message is malformed.
bool read_body(std::string_view body, ClientHello& hello) {
  Fields fields(body);
  Offer offer;
  offer.version = fields.number(2);
  fields.take(kRandom);
  fields.list(1);  // session identifier
  offer.suites = fields.list(2);
  hello.suites = suites_of(offer.suites);
  fields.list(1);  // compression methods
  if (fields.broken()) return false;
  // Extensions are optional in TLS 1.2.
  const bool none = fields.empty();
  Fields extensions(none ? std::string_view() : fields.list(2));
  if (fields.broken() || !fields.empty()) return false;
  while (!extensions.empty()) {
    const std::size_t type = extensions.number(2);
    const std::string_view content = extensions.list(2);
    if (extensions.broken()) return false;
    if (type == kServerName) read_name(content, hello);
    if (type == kProtocols) read_protocols(content, hello);
    if (type == kVersions) offer.versions = Fields(content).list(1);
    if (type == kSignatures) offer.signatures = Fields(content).list(2);
    if (type == kGroups) offer.groups = Fields(content).list(2);
  }
  hello.offers_tls13 = offer.versions && has_one_of(std::array<std::size_t, 1>{kTls13}, *offer.versions);
  hello.suits_p256 = suits_p256(offer, hello.offers_tls13);
  return true;
}

// Reads the header of a record. Returns the length of its content, or nothing if it is not a handshake record.
std::optional<std::size_t> read_header(Fields& bytes) {
  const std::size_t type = bytes.number(1), major = bytes.number(1);
  bytes.number(1);
  const std::size_t length = bytes.number(2);
  const bool fits = type == kHandshakeRecord && major == kMajorVersion && length > 0 && length <= kMaxRecord;
  return fits ? std::optional(length) : std::nullopt;
}

// Judges the bytes of a message, as far as they have arrived.
HelloState read_message(std::string_view bytes, ClientHello& hello) {
  Fields message(bytes);
  if (!bytes.empty() && message.number(1) != kClientHello) return HelloState::not_tls;
  const std::string_view body = message.list(3);
  if (message.broken()) return HelloState::incomplete;
  return read_body(body, hello) ? HelloState::complete : HelloState::not_tls;
}

// Returns true if these bytes may begin a handshake record that has not arrived completely.
bool may_begin_record(std::string_view bytes) {
  if (bytes.empty()) return true;
  const bool handshake = static_cast<unsigned char>(bytes[0]) == kHandshakeRecord;
  return handshake && (bytes.size() < 2 || static_cast<unsigned char>(bytes[1]) == kMajorVersion);
}

}  // namespace

// The message is in one record, except that of a client which divides it (RFC 8446 §5.1): then the parts are joined.
HelloState read_hello(std::span<const char> bytes, ClientHello& hello) {
  constexpr std::size_t kHeader = 5;
  std::string joined;
  Fields records(std::string_view(bytes.data(), bytes.size()));
  while (true) {
    if (records.rest().size() < kHeader) {
      return may_begin_record(records.rest()) ? HelloState::incomplete : HelloState::not_tls;
    }
    const std::optional<std::size_t> length = read_header(records);
    if (!length) return HelloState::not_tls;
    const bool whole = records.rest().size() >= *length;
    std::string_view message = records.take(whole ? *length : records.rest().size());
    if (!joined.empty() || (whole && !records.empty())) message = joined.append(message);
    const HelloState state = read_message(message, hello);
    if (state != HelloState::incomplete || !whole) return state;
  }
}

}  // namespace carpool::proxy::tls
