// RequestReader: parses the request line by hand, because any method is allowed, then the fields, then the body.
#include "proxy/http/char_class.h"
#include "proxy/http/framing.h"
#include "proxy/http/h1/codec.h"

namespace carpool::proxy::http {

namespace {
constexpr std::string_view kVersion = "HTTP/1.";
constexpr std::string_view kUsualEnd = "HTTP/1.1\r\n";  // fast path: matched as a whole if it arrived as a whole
constexpr std::size_t kMajor = 5;                       // offset of the major version

Step malformed(const char* what, bool too_large = false) {
  Step step;
  step.error = what;
  step.too_large = too_large;
  return step;
}

Step consume(std::size_t bytes) {
  Step step;
  step.consumed = bytes;
  return step;
}
}  // namespace

Result<ParseResult> RequestReader::feed(std::string_view bytes, RequestHead& head, BodySink& sink,
                                        FieldLayouts* layouts) {
  if (state_ == State::failed) return fail(FaultKind::malformed_request, "bytes after a rejected request");
  if (state_ == State::done) reset();
  if (state_ == State::body) {
    const Step step = body_.feed(bytes, section_, head.fields, limits_, sink);
    if (step.error != nullptr) return fail(FaultKind::malformed_request, step.error);
    if (step.done) state_ = State::done;
    return ParseResult{step.consumed, step.done ? Progress::message : Progress::need_more};
  }
  std::size_t consumed = 0;
  if (state_ != State::fields) {
    const Step line = read_line(bytes, head);
    if (line.error != nullptr) return fail(kind_, line.error);
    consumed = line.consumed;
    if (state_ != State::fields) return ParseResult{consumed, Progress::need_more};
  }
  const Step step = section_.feed_head(bytes.substr(consumed), head.fields, limits_, layouts);
  consumed += step.consumed;
  if (step.error != nullptr) {
    return fail(step.too_large ? FaultKind::head_too_large : FaultKind::malformed_request, step.error);
  }
  if (!step.done) return ParseResult{consumed, Progress::need_more};
  return end_head(consumed, head);
}

Result<ParseResult> RequestReader::end_head(std::size_t consumed, RequestHead& head) {
  Status resolved = resolve_framing(head);
  if (!resolved) {
    state_ = State::failed;
    return resolved.take_fault();
  }
  body_.start(head.framing, head.length);
  state_ = State::body;
  return ParseResult{consumed, Progress::head};
}

Result<ParseResult> RequestReader::fail(FaultKind kind, const char* what) {
  state_ = State::failed;
  return Fault{kind, Side::client, what};
}

// Parses until State::fields or the end of the bytes.
Step RequestReader::read_line(std::string_view bytes, RequestHead& head) {
  kind_ = FaultKind::malformed_request;
  std::size_t consumed = 0;
  while (state_ != State::fields && consumed < bytes.size()) {
    const std::string_view rest = bytes.substr(consumed);
    Step step;
    if (state_ == State::method) {
      step = read_method(rest, head);
    } else if (state_ == State::target) {
      step = read_target(rest, head);
    } else {
      step = line_byte(rest.front(), head);
    }
    if (step.error != nullptr) return step;
    consumed += step.consumed;
  }
  return consume(consumed);
}

Step RequestReader::line_byte(char c, RequestHead& head) {
  switch (state_) {
    case State::start:
      if (c == '\r') {
        state_ = State::empty_line;
        return consume(1);
      }
      [[fallthrough]];
    case State::second_start:
      head.clear();
      at_ = 0;
      state_ = State::method;
      return consume(0);
    case State::empty_line:
      state_ = State::second_start;
      return c == '\n' ? consume(1) : malformed("a CR without LF before the request");
    case State::version:
      if (at_ < kVersion.size()) {
        if (at_ == kMajor && c >= '2' && c <= '9') {
          kind_ = FaultKind::version_not_supported;
          return malformed("a version other than HTTP/1");
        }
        return c == kVersion[at_++] ? consume(1) : malformed("no HTTP version after the target");
      }
      if (c < '0' || c > '9') return malformed("no HTTP version after the target");
      // A higher minor version is treated as the highest known one (RFC 9110 §2.5).
      head.version = c == '0' ? Version::http10 : Version::http11;
      state_ = State::line_cr;
      return consume(1);
    case State::line_cr:
      state_ = State::line_lf;
      return c == '\r' ? consume(1) : malformed("the request line does not end in CRLF");
    default:
      section_.start();
      state_ = State::fields;
      return c == '\n' ? consume(1) : malformed("the request line does not end in CRLF");
  }
}

Step RequestReader::read_method(std::string_view bytes, RequestHead& head) {
  const std::string_view piece = prefix_of(bytes, kToken);
  head.method.append(piece.substr(0, kMaxMethodLength + 1));
  if (head.method.size() > kMaxMethodLength) {
    kind_ = FaultKind::not_implemented;
    return malformed("the method is longer than 64 bytes");
  }
  if (piece.size() == bytes.size()) return consume(piece.size());
  if (bytes[piece.size()] != ' ') return malformed("an invalid byte in the method");
  if (head.method.empty()) return malformed("white space before the method");
  state_ = State::target;
  return consume(piece.size() + 1);
}

Step RequestReader::read_target(std::string_view bytes, RequestHead& head) {
  const std::string_view piece = prefix_of(bytes, kTarget);
  if (head.target.size() + piece.size() > limits_.target) {
    kind_ = FaultKind::target_too_long;
    return malformed("the request target exceeds the limit");
  }
  head.target.append(piece);
  if (piece.size() == bytes.size()) return consume(piece.size());
  if (bytes[piece.size()] == '\r') return malformed("a request without a version");
  if (bytes[piece.size()] != ' ') return malformed("an invalid byte in the request target");
  if (head.target.empty()) return malformed("more than one space in the request line");
  state_ = State::version;
  const std::string_view rest = bytes.substr(piece.size() + 1);
  if (!rest.starts_with(kUsualEnd)) return consume(piece.size() + 1);
  head.version = Version::http11;
  section_.start();
  state_ = State::fields;
  return consume(piece.size() + 1 + kUsualEnd.size());
}

}  // namespace carpool::proxy::http
