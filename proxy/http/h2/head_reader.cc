#include "proxy/http/h2/head_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "proxy/http/char_class.h"
#include "proxy/http/error_reply.h"
#include "proxy/http/framing.h"

namespace carpool::proxy::http {

namespace {
constexpr std::uint8_t kMethod = 1, kScheme = 2, kAuthority = 4, kPath = 8, kProtocol = 16, kStatus = 32;
constexpr std::size_t kEntryOverhead = 32;  // RFC 9113 §6.5.2
constexpr std::size_t kMaxWord = 256;       // scheme, protocol
constexpr std::size_t kKeptCapacity = 512;

// Field names are tokens in lower case.
constexpr CharTable kName = [] {
  CharTable table = kToken;
  for (unsigned c = 'A'; c <= 'Z'; ++c) table[c] = false;
  return table;
}();

// The same values as in HTTP/1.1: no control character except HTAB.
constexpr CharTable kValue = [] {
  CharTable table{};
  for (unsigned c = 0x20; c < 256; ++c) table[c] = c != 0x7F;
  table['\t'] = true;
  return table;
}();

bool all_of(std::string_view text, const CharTable& table) {
  return prefix_of(text, table).size() == text.size();
}

constexpr std::uint64_t kEachByte = 0x0101010101010101, kHighBits = kEachByte * 0x80;
constexpr std::size_t kWordSize = sizeof(std::uint64_t);

// Returns true if good() accepts each eight bytes, of which the last overlap the ones before. After false the text must
// be looked up in its table: it may be too short, or have a byte that good() does not know.
template <class Good>
bool each_word(std::string_view text, const Good& good) {
  if (text.size() < kWordSize) return false;
  const char* const last = text.data() + text.size() - kWordSize;
  for (const char* at = text.data();; at = at + kWordSize < last ? at + kWordSize : last) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    if (!good(word)) return false;
    if (at == last) return true;
  }
}

// As all_of(), for a table that has every byte from `least`, at most 0x80, on except DEL.
bool all_visible(std::string_view text, std::uint64_t least, const CharTable& table) {
  const auto visible = [least](std::uint64_t word) {
    const std::uint64_t del = word ^ (kEachByte * 0x7F);
    return ((((word - kEachByte * least) & ~word) | ((del - kEachByte) & ~del)) & kHighBits) == 0;
  };
  return each_word(text, visible) || all_of(text, table);
}

// As all_of() for kName: the words of nearly all names are letters and hyphens.
bool is_name(std::string_view text) {
  const auto usual = [](std::uint64_t word) {
    const std::uint64_t letter = (word + kEachByte * (0x80 - 'a')) & ~(word + kEachByte * (0x7F - 'z'));
    const std::uint64_t no_hyphen = (word ^ (kEachByte * '-')) + kEachByte * 0x7F;
    return (word & kHighBits) == 0 && ((letter | ~no_hyphen) & kHighBits) == kHighBits;
  };
  return each_word(text, usual) || all_of(text, kName);
}

// Sizes that are known at compile time need no call of memcmp().
template <std::size_t kSize>
bool equals(std::string_view text, const char (&word)[kSize]) {
  return text.size() == kSize - 1 && std::memcmp(text.data(), word, kSize - 1) == 0;
}

const char* check_value(std::string_view value) {
  if (!all_visible(value, ' ', kValue)) return "an invalid byte in a field value";
  if (value.empty()) return nullptr;
  return white(value.front()) || white(value.back()) ? "white space around a field value" : nullptr;
}

// RFC 9113 §8.2.2.
const char* check_hop(FieldName id, std::string_view value) {
  switch (id) {
    case FieldName::connection:
    case FieldName::keep_alive:
    case FieldName::proxy_connection:
    case FieldName::transfer_encoding:
    case FieldName::upgrade:
      return "a connection-specific field";
    case FieldName::te:
      return iequals(value, "trailers") ? nullptr : "TE with a value other than trailers";
    default:
      return nullptr;
  }
}
}  // namespace

void H2HeadReader::begin(Kind kind, Fields& fields) {
  kind_ = kind;
  fields_ = &fields;
  error_ = nullptr;
  refused_ = regular_seen_ = unread_grpc_ = cookie_sensitive_ = false;
  seen_ = 0;
  count_ = 0;
  bytes_ = 0;
  cookie_.clear();
  lines_size_ = 0;
}

void H2HeadReader::begin_request(RequestHead& into) {
  into.clear();
  into.version = Version::http2;
  request_ = &into;
  begin(Kind::request, into.fields);
}

void H2HeadReader::begin_response(ResponseHead& into) {
  into.clear();
  into.version = Version::http2;
  response_ = &into;
  begin(Kind::response, into.fields);
}

void H2HeadReader::begin_trailers(Fields& into) {
  into.clear();
  begin(Kind::trailers, into);
}

void H2HeadReader::field(std::string_view name, std::string_view value, bool sensitive) {
  bytes_ += name.size() + value.size() + kEntryOverhead;
  if (error_ != nullptr) return;
  if (refused_) return note_unread(name, value);
  if (bytes_ > limits_.header_bytes) return refuse(FaultKind::head_too_large);
  if (name.starts_with(':')) return pseudo(name, value, sensitive);
  regular_seen_ = true;
  // The crumbs of a cookie become one field (RFC 9113 §8.2.3); their number is bounded in bytes.
  const bool crumb = !cookie_.empty() && equals(name, "cookie");
  if (!crumb && ++count_ > limits_.headers) return refuse(FaultKind::head_too_large);
  regular(name, value, sensitive);
}

// Notes what decides the form of the reply to a head over a limit.
void H2HeadReader::note_unread(std::string_view name, std::string_view value) {
  unread_grpc_ = unread_grpc_ || (equals(name, "content-type") && is_grpc_type(value));
}

bool H2HeadReader::is_grpc() const {
  return unread_grpc_ || http::is_grpc(*request_);
}

void H2HeadReader::pseudo(std::string_view name, std::string_view value, bool sensitive) {
  if (regular_seen_) return reject("a pseudo-header field after a regular field");
  switch (kind_) {
    case Kind::request:
      return request_pseudo(name, value, sensitive);
    case Kind::response:
      if (!equals(name, ":status")) return reject("an invalid pseudo-header field in a response");
      if (value.size() != 3 || !std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; }) ||
          value.front() == '0') {
        return reject("an invalid :status");
      }
      mark(kStatus);
      response_->status = static_cast<std::uint16_t>((value[0] - '0') * 100 + (value[1] - '0') * 10 + (value[2] - '0'));
      return;
    case Kind::trailers:
      return reject("a pseudo-header field in trailers");
  }
}

// :scheme and :authority are those of the origin in what carpool sends, so nothing is kept of how they arrived.
void H2HeadReader::request_pseudo(std::string_view name, std::string_view value, bool sensitive) {
  if (equals(name, ":method")) {
    mark(kMethod);
    if (value.empty() || !all_of(value, kToken)) return reject("no method");
    if (value.size() > kMaxMethodLength) return refuse(FaultKind::not_implemented);
    request_->method.assign(value);
  } else if (equals(name, ":path")) {
    mark(kPath);
    if (value.size() > limits_.target) return refuse(FaultKind::target_too_long);
    text_of(request_->target, value);
    request_->sensitive_target = sensitive;
  } else if (equals(name, ":scheme")) {
    mark(kScheme);
    if (value.size() > kMaxWord) return reject("a scheme without a delimiter");
    text_of(request_->scheme, value);
  } else if (equals(name, ":authority")) {
    mark(kAuthority);
    if (value.size() > limits_.target) return refuse(FaultKind::target_too_long);
    text_of(request_->authority, value);
  } else if (equals(name, ":protocol")) {
    mark(kProtocol);
    if (value.size() > kMaxWord || !all_of(value, kToken)) return reject("a :protocol that is not a token");
    text_of(request_->protocol, value);
  } else {
    reject("an unknown pseudo-header field");
  }
}

void H2HeadReader::text_of(std::string& into, std::string_view value) {
  if (value.empty()) return reject("an empty pseudo-header field");
  if (!all_visible(value, '!', kTarget)) return reject("an invalid byte in a pseudo-header field");
  into.assign(value);
}

void H2HeadReader::mark(std::uint8_t bit) {
  if ((seen_ & bit) != 0) reject("a repeated pseudo-header field");
  seen_ = static_cast<std::uint8_t>(seen_ | bit);
}

void H2HeadReader::regular(std::string_view name, std::string_view value, bool sensitive) {
  if (name.empty() || !is_name(name)) return reject("a field name that is not a token in lower case");
  if (const char* why = check_value(value)) return reject(why);
  const FieldName id = field_name(name);
  if (const char* why = check_hop(id, value)) return reject(why);
  if (kind_ == Kind::request && equals(name, "cookie")) {
    if (!cookie_.empty() && !value.empty()) cookie_.append("; ");
    cookie_.append(value);
    cookie_sensitive_ |= sensitive;
    return;
  }
  add(name, value, id);
  if (sensitive) fields_->mark_sensitive();
}

// As Fields::add(), but the text of many fields is appended at once.
void H2HeadReader::add(std::string_view name, std::string_view value, FieldName id) {
  const std::size_t size = Fields::bytes_of(name, value);
  if (size > sizeof lines_ - lines_size_) append_lines();
  if (size > sizeof lines_) return fields_->add(name, value, id);
  fields_->announce(name, value.size(), id);
  char* at = lines_ + lines_size_;
  std::memcpy(at, name.data(), name.size());
  at += name.size();
  *at++ = ':';
  *at++ = ' ';
  std::memcpy(at, value.data(), value.size());
  at += value.size();
  *at++ = '\r';
  *at++ = '\n';
  lines_size_ += size;
}

void H2HeadReader::append_lines() {
  fields_->append_lines({lines_, std::exchange(lines_size_, 0)});
}

void H2HeadReader::join_cookies() {
  if (cookie_.empty()) return;
  fields_->add("cookie", cookie_);
  if (cookie_sensitive_) fields_->mark_sensitive();
  if (cookie_.capacity() > kKeptCapacity) std::string().swap(cookie_);
}

// RFC 9113 §8.3.1, §8.5, RFC 8441 §4.
void H2HeadReader::check_request(const RequestHead& head, bool extended_connect) {
  const std::uint8_t all = kMethod | kScheme | kPath;
  if (head.has_method("CONNECT") && (seen_ & kProtocol) == 0) {
    if (seen_ != (kMethod | kAuthority)) reject("CONNECT with a pseudo-header field other than :authority");
    return;
  }
  if ((seen_ & all) != all) return reject("a pseudo-header field is missing");
  if ((seen_ & kProtocol) != 0) {
    if (!head.has_method("CONNECT")) return reject(":protocol with a method other than CONNECT");
    if (!extended_connect) return reject(":protocol, which was not offered");
    if ((seen_ & kAuthority) == 0) return reject("an extended CONNECT without :authority");
  }
  if (head.target.starts_with('/')) return;
  if (head.target != "*" || !head.has_method("OPTIONS")) reject("an invalid :path");
}

H2HeadReader::Outcome H2HeadReader::end_request(bool end, bool extended_connect) {
  append_lines();
  join_cookies();
  RequestHead& head = *request_;
  if (refused_) return outcome();
  check_request(head, extended_connect);
  if (error_ != nullptr) return outcome();
  if (const Status resolved = resolve_framing(head); !resolved) {
    reject("an invalid or repeated Content-Length");
    return outcome();
  }
  head.ends_later = !end;
  if (head.has_method("CONNECT")) {
    if (head.framing == Framing::length) reject("CONNECT with a Content-Length");
  } else if (end) {
    if (head.framing == Framing::length && head.length != 0) reject("a Content-Length without a body");
  } else if (head.framing == Framing::none) {
    head.framing = Framing::chunked;  // the end of the body is signalled by END_STREAM
  }
  return outcome();
}

H2HeadReader::Outcome H2HeadReader::end_response(bool end, bool head_request) {
  append_lines();
  ResponseHead& head = *response_;
  if (refused_) return outcome();
  if ((seen_ & kStatus) == 0) reject("no :status");
  if (error_ != nullptr) return outcome();
  if (head.status == 101) reject("101 in HTTP/2");
  if (head.status < 200 && end) reject("an interim response that ends the stream");
  if (const Status resolved = resolve_framing(head, head_request); !resolved) {
    reject("an invalid or repeated Content-Length");
    return outcome();
  }
  head.keep_alive = true;
  head.ends_later = !end;
  const bool bodiless = head_request || head.status < 200 || head.status == 204 || head.status == 304;
  if (bodiless) return outcome();
  if (end) {
    if (head.framing == Framing::length && head.length != 0) reject("a Content-Length without a body");
    head.framing = head.framing == Framing::length ? Framing::length : Framing::none;
  } else if (head.framing != Framing::length) {
    head.framing = Framing::chunked;
  }
  return outcome();
}

H2HeadReader::Outcome H2HeadReader::end_trailers(bool end) {
  CARPOOL_ASSERT(kind_ == Kind::trailers);
  append_lines();
  if (!end) reject("trailers that do not end the stream");
  return outcome();
}

}  // namespace carpool::proxy::http
