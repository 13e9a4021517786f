// ResponseReader: parses the status line, then the fields, then the body, and 1xx responses before the final one.
#include <algorithm>

#include "proxy/http/char_class.h"
#include "proxy/http/framing.h"
#include "proxy/http/h1/codec.h"

namespace carpool::proxy::http {

namespace {
constexpr std::string_view kStatusLineVersion = "HTTP/1.";
// fast path: matched as a whole if it arrived together with the status and the following space
constexpr std::string_view kUsualStart = "HTTP/1.1 ";
constexpr std::size_t kStatusDigits = 3;
constexpr std::size_t kMaxReason = 1024;
constexpr const char* kBareLf = "the status line ends in LF without CR";
}  // namespace

void ResponseReader::expect(std::string_view request_method, bool upgrade_asked, bool bare_lf) {
  state_ = State::start;
  informational_ = {};
  any_byte_ = false;
  head_request_ = request_method == "HEAD";
  connect_ = request_method == "CONNECT";
  upgrade_asked_ = upgrade_asked;
  bare_lf_ = bare_lf;
  after_cr_ = false;
}

Result<ParseResult> ResponseReader::feed(std::string_view bytes, ResponseHead& head, BodySink& sink,
                                         FieldLayouts* layouts) {
  if (state_ == State::failed) return fail(FaultKind::malformed_response, "bytes after a rejected response");
  if (state_ == State::done) return ParseResult{0, Progress::message};
  if (state_ == State::upgraded) return ParseResult{0, Progress::upgraded};
  if (state_ == State::body) {
    const Step step = body_.feed(bytes, section_, head.fields, limits_, sink);
    if (step.error != nullptr) return fail(FaultKind::malformed_response, step.error);
    if (step.done) state_ = State::done;
    return ParseResult{step.consumed, step.done ? Progress::message : Progress::need_more};
  }
  if (!bytes.empty()) any_byte_ = true;
  return bare_lf_ ? feed_with_bare_lf(bytes, head) : feed_head(bytes, head, layouts);
}

// Treats an LF without CR as CRLF; a CR without LF remains an error.
Result<ParseResult> ResponseReader::feed_with_bare_lf(std::string_view bytes, ResponseHead& head) {
  std::size_t consumed = 0;
  while (consumed < bytes.size()) {
    const std::string_view rest = bytes.substr(consumed);
    std::string_view piece = rest.substr(0, rest.find('\n'));
    consumed += std::max<std::size_t>(piece.size(), 1);
    if (piece.empty()) piece = after_cr_ ? "\n" : "\r\n";
    after_cr_ = piece.back() == '\r';
    Result<ParseResult> fed = feed_head(piece, head, nullptr);
    if (!fed) return fed;
    if (fed->progress != Progress::need_more) return ParseResult{consumed, fed->progress};
  }
  return ParseResult{consumed, Progress::need_more};
}

Result<ParseResult> ResponseReader::feed_head(std::string_view bytes, ResponseHead& head, FieldLayouts* layouts) {
  const Step line = read_line(bytes, head);
  if (line.error != nullptr) {
    return fail(line.too_large ? FaultKind::response_head_too_large : FaultKind::malformed_response, line.error);
  }
  if (state_ != State::fields) return ParseResult{line.consumed, Progress::need_more};
  const Step step = section_.feed_head(bytes.substr(line.consumed), head.fields, limits_, layouts);
  if (step.error != nullptr) {
    return fail(step.too_large ? FaultKind::response_head_too_large : FaultKind::malformed_response, step.error);
  }
  if (!step.done) return ParseResult{line.consumed + step.consumed, Progress::need_more};
  return end_head(line.consumed + step.consumed, head);
}

Result<ParseResult> ResponseReader::end_head(std::size_t consumed, ResponseHead& head) {
  const bool tunnel = connect_ && head.status >= 200 && head.status < 300;
  Status resolved = resolve_framing(head, head_request_ || tunnel);
  if (!resolved) {
    state_ = State::failed;
    return resolved.take_fault();
  }
  if (head.status == 101 && !upgrade_asked_) {
    return fail(FaultKind::malformed_response, "101 Switching Protocols without a request for it");
  }
  if (head.status == 101 || tunnel) {
    state_ = State::upgraded;
    return ParseResult{consumed, Progress::upgraded};
  }
  if (head.status < 200) {
    const char* const error = informational_.add(head.fields.bytes(), limits_);
    if (error != nullptr) return fail(FaultKind::informational_limit, error);
    state_ = State::start;
    return ParseResult{consumed, Progress::head};
  }
  body_.start(head.framing, head.length);
  state_ = State::body;
  return ParseResult{consumed, Progress::head};
}

Result<ParseResult> ResponseReader::fail(FaultKind kind, const char* what) {
  state_ = State::failed;
  return Fault{kind, Side::upstream, what};
}

bool ResponseReader::skip_body(std::uint64_t bytes) {
  body_.skip(bytes);
  if (body_.complete()) state_ = State::done;
  return body_.complete();
}

Result<Progress> ResponseReader::finish() {
  if (state_ == State::done || state_ == State::upgraded) return Progress::message;
  if (state_ == State::body && (body_.until_close() || body_.complete())) {
    state_ = State::done;
    return Progress::message;
  }
  if (!any_byte_) {
    return Fault{FaultKind::connection_terminated, Side::upstream,
                 "the origin closed the connection without a response"};
  }
  return Fault{FaultKind::response_incomplete, Side::upstream, "the origin closed the connection inside its response"};
}

// Matches "HTTP/1.1 200 " as a whole; returns 0 for anything else, which is then parsed byte by byte.
std::size_t ResponseReader::usual_start(std::string_view bytes, ResponseHead& head) {
  constexpr std::size_t kEnd = kUsualStart.size() + kStatusDigits;
  if (state_ != State::start || bytes.size() <= kEnd || !bytes.starts_with(kUsualStart) || bytes[kEnd] != ' ') return 0;
  unsigned status = 0;
  for (const char c : bytes.substr(kUsualStart.size(), kStatusDigits)) {
    if (c < (status == 0 ? '1' : '0') || c > '9') return 0;
    status = status * 10 + static_cast<unsigned>(c - '0');
  }
  head.clear();
  head.status = static_cast<std::uint16_t>(status);
  state_ = State::reason;
  return kEnd + 1;
}

// Parses until State::fields or the end of the bytes.
Step ResponseReader::read_line(std::string_view bytes, ResponseHead& head) {
  Step step;
  step.consumed = usual_start(bytes, head);
  while (state_ < State::fields && step.consumed < bytes.size()) {
    if (state_ == State::reason) {
      const std::string_view piece = prefix_of(bytes.substr(step.consumed), kReason);
      if (head.reason.size() + piece.size() > kMaxReason) {
        step.error = "a reason phrase of more than 1024 bytes";
        step.too_large = true;
        return step;
      }
      head.reason.append(piece);
      step.consumed += piece.size();
      if (step.consumed == bytes.size()) return step;
    }
    const char c = bytes[step.consumed];
    step.error = line_byte(c, head);
    if (step.error != nullptr) return step;
    ++step.consumed;
  }
  return step;
}

const char* ResponseReader::line_byte(char c, ResponseHead& head) {
  switch (state_) {
    case State::start:
      head.clear();
      at_ = 0;
      state_ = State::version;
      [[fallthrough]];
    case State::version:
      if (at_ < kStatusLineVersion.size()) return c == kStatusLineVersion[at_++] ? nullptr : "no HTTP/1 status line";
      if (at_++ == kStatusLineVersion.size()) {
        // A higher minor version is treated as the highest known one (RFC 9110 §2.5).
        head.version = c == '0' ? Version::http10 : Version::http11;
        return c >= '0' && c <= '9' ? nullptr : "no HTTP/1 status line";
      }
      at_ = 0;
      state_ = State::status;
      return c == ' ' ? nullptr : "no HTTP/1 status line";
    case State::status:
      return status_byte(c, head);
    case State::reason:
      state_ = State::line_lf;
      if (c == '\n') return kBareLf;
      return c == '\r' ? nullptr : "an invalid byte in the reason phrase";
    default:
      section_.start();
      state_ = State::fields;
      return c == '\n' ? nullptr : "the status line does not end in CRLF";
  }
}

const char* ResponseReader::status_byte(char c, ResponseHead& head) {
  if (at_ < kStatusDigits) {
    if (c < (at_ == 0 ? '1' : '0') || c > '9') return "the status is not a number of three digits";
    head.status = static_cast<std::uint16_t>(head.status * 10 + (c - '0'));
    ++at_;
    return nullptr;
  }
  if (c == '\r') {  // no reason phrase; some servers also omit the space before it
    state_ = State::line_lf;
    return nullptr;
  }
  state_ = State::reason;
  if (c == '\n') return kBareLf;
  return c == ' ' ? nullptr : "the status is not a number of three digits";
}

}  // namespace carpool::proxy::http
