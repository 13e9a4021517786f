#include "proxy/http/framing.h"

#include <optional>
#include <string>

#include "proxy/http/connection_options.h"
#include "proxy/http/member_reader.h"

namespace carpool::proxy::http {

namespace {

// Parses digits only, below 2^63, so that sums of lengths cannot overflow.
std::optional<std::uint64_t> content_length(std::string_view text) {
  constexpr std::size_t kMaxDigits = 18;
  if (text.empty()) return std::nullopt;
  while (text.size() > 1 && text.front() == '0') text.remove_prefix(1);
  if (text.size() > kMaxDigits) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

struct Announced {
  Framing framing = Framing::none;
  std::uint64_t length = 0;
  const char* error = nullptr;
  bool unknown_coding = false;
};

Announced announced(const char* error) {
  Announced result;
  result.error = error;
  return result;
}

// Accepts exactly one "chunked". Only a recipient that can decode a preceding coding could forward it.
Announced transfer_coding(const Fields& fields) {
  Announced result;
  std::size_t members = 0;
  bool chunked = false;
  bool after = false;
  MemberReader list(fields, FieldName::transfer_encoding);
  for (std::string_view coding; list.next(coding); ++members) {
    after = after || chunked;
    chunked = iequals(coding, "chunked");
  }
  if (after) return announced("Transfer-Encoding has a coding after chunked");
  if (!chunked) return announced("Transfer-Encoding does not end in chunked");
  result.framing = Framing::chunked;
  if (members == 1) return result;
  result.error = "a transfer coding other than chunked";
  result.unknown_coding = true;
  return result;
}

Announced framing_of(const Fields& fields, Version version) {
  const std::size_t lengths = fields.count(FieldName::content_length);
  if (fields.has(FieldName::transfer_encoding)) {
    if (lengths != 0) return announced("both Content-Length and Transfer-Encoding");
    if (version == Version::http10) return announced("Transfer-Encoding in HTTP/1.0");
    return transfer_coding(fields);
  }
  if (lengths == 0) return {};
  if (lengths > 1) return announced("more than one Content-Length");
  const std::optional<std::uint64_t> length = content_length(fields.get(FieldName::content_length));
  if (!length) return announced("an invalid Content-Length");
  Announced result;
  result.framing = Framing::length;
  result.length = *length;
  return result;
}

bool persists(Version version, const ConnectionOptions& options) {
  if (options.close) return false;
  return version != Version::http10 || options.keep_alive;
}

// Returns true if the lists in all fields of this name have more than `most` members together.
bool lists_more(const Fields& fields, FieldName name, std::size_t most) {
  std::size_t members = 0;
  MemberReader list(fields, name);
  for (std::string_view member; list.next(member);) {
    if (++members > most) return true;
  }
  return false;
}

bool expects_continue(const Fields& fields) {
  if (!fields.may_have(FieldName::expect)) return false;
  MemberReader list(fields, FieldName::expect);
  for (std::string_view expectation; list.next(expectation);) {
    if (iequals(expectation, "100-continue")) return true;
  }
  return false;
}

// An offer of h2c is never accepted: cleartext HTTP/2 requires prior knowledge (RFC 9113 §3.1).
bool offers_upgrade(const Fields& fields) {
  MemberReader list(fields, FieldName::upgrade);
  for (std::string_view protocol; list.next(protocol);) {
    if (!iequals(protocol, "h2c")) return true;
  }
  return false;
}

// More protocols than any sender offers. The protocols of a 101 are searched for among them.
constexpr std::size_t kMaxProtocols = 64;

// Returns true if the head has Transfer-Encoding, as HTTP/1.1 permits, and no Content-Length. Without content the
// codings are those that GET would get (RFC 9112 §6.1), so carpool need not decode them.
bool has_coding_alone(const ResponseHead& head) {
  return head.fields.has(FieldName::transfer_encoding) && !head.fields.has(FieldName::content_length) &&
         head.version == Version::http11;
}

Fault invalid_framing(const char* error) {
  return {FaultKind::malformed_request, Side::client, error};
}

}  // namespace

bool announces_length(const Fields& fields) {
  return fields.count(FieldName::content_length) == 1 && !fields.has(FieldName::transfer_encoding) &&
         content_length(fields.get(FieldName::content_length));
}

Status resolve_framing(RequestHead& head) {
  const ConnectionOptions options(head.fields);
  if (options.too_many()) return invalid_framing("too many connection options");
  const Announced result = framing_of(head.fields, head.version);
  if (result.unknown_coding) return Fault{FaultKind::not_implemented, Side::client, result.error};
  if (result.error != nullptr) return invalid_framing(result.error);
  head.framing = result.framing;
  head.length = result.length;
  head.keep_alive = persists(head.version, options);
  head.lists_fields = options.name_fields();
  const bool current = head.version != Version::http10;
  // An Expect that Connection lists does not reach the origin, which would send no 100.
  head.expect_continue = current && expects_continue(head.fields) && !options.lists("expect");
  head.upgrade = current && options.upgrade && offers_upgrade(head.fields);
  if (head.upgrade && lists_more(head.fields, FieldName::upgrade, kMaxProtocols)) {
    return invalid_framing("too many protocols in Upgrade");
  }
  return Done{};
}

Status resolve_framing(ResponseHead& head, bool bodiless) {
  const ConnectionOptions options(head.fields);
  const char* error = options.too_many() ? "too many connection options" : nullptr;
  const Announced result = framing_of(head.fields, head.version);
  const bool empty = bodiless || head.status < 200 || head.status == 204 || head.status == 304;
  const bool unclear = result.error != nullptr && !(empty && has_coding_alone(head));
  // In HTTP/1 a message without content ends with its head, whatever its fields announce (RFC 9112 §6.3).
  const bool ends_here = empty && head.version != Version::http2;
  if (error == nullptr && unclear && !ends_here) error = result.error;
  if (error != nullptr) return Fault{FaultKind::malformed_response, Side::upstream, error};
  head.framing = empty ? Framing::none : result.framing == Framing::none ? Framing::until_close : result.framing;
  head.length = empty ? 0 : result.length;
  // An origin that contradicts itself may also send the content.
  head.unclear_length = unclear;
  head.keep_alive = persists(head.version, options) && head.framing != Framing::until_close && !unclear;
  head.lists_fields = options.name_fields();
  return Done{};
}

}  // namespace carpool::proxy::http
