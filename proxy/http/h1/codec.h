// HTTP/1.1 codec: parses bytes into messages, without I/O. Its strictness does not depend on the version or build
// options of llhttp.
//
// Readers pause: feed() returns the number of bytes that it consumed. It stops after a head, so that the owner can
// decide before it receives the body, and after the end of a message, so that the next pipelined head stays with the
// owner. Messages and fault kinds do not depend on how the bytes are split.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "proxy/http/h1/body_reader.h"
#include "proxy/http/h1/field_reader.h"
#include "proxy/http/informational.h"
#include "proxy/http/limits.h"
#include "proxy/http/message.h"

namespace carpool::proxy::http {

// BodyText: collects the whole body as one string; trailers are dropped.
struct BodyText final : BodySink {
  void on_body(std::string_view bytes) override { text.append(bytes); }
  void on_trailer(std::string_view, std::string_view, bool) override {}
  std::string text;
};

enum class Progress : std::uint8_t {
  need_more,  // all bytes were consumed, the message is incomplete
  head,       // the head is complete; call feed() again for the body, even without bytes: a message may have no body
  message,    // the message is complete; the remaining bytes belong to the next one
  upgraded,   // responses: 101, or 2xx to CONNECT; the head is complete, the following bytes are not HTTP
};

struct ParseResult {
  std::size_t consumed = 0;
  Progress progress = Progress::need_more;
};

// RequestReader: parses requests of a client. Kept small, because every idle client has one.
class RequestReader {
 public:
  explicit RequestReader(const Limits& limits) : limits_(limits) {}
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  // Faults: malformed_request, head_too_large, target_too_long, not_implemented (unknown transfer coding, an overlong
  // method), version_not_supported (another major version). After a fault the connection only permits a reply and a
  // close. `head` must be the same object throughout a message; it is cleared at its first byte. `layouts`: those of
  // the loop that reads, if any.
  Result<ParseResult> feed(std::string_view bytes, RequestHead& head, BodySink& sink, FieldLayouts* layouts = nullptr);
  // Called on the client's FIN. Returns true between messages, false inside one.
  bool at_boundary() const { return state_ <= State::second_start || state_ == State::done; }
  // Returns true from the first byte of a head (header_timeout starts there) until the head is complete.
  bool in_head() const { return state_ > State::second_start && state_ <= State::fields; }
  void reset() { state_ = State::start; }  // prepares for the next message

 private:
  enum class State : std::uint8_t {
    start,
    empty_line,    // one CRLF before a request is skipped (RFC 9112 §2.2)
    second_start,  // after that CRLF
    method,
    target,
    version,
    line_cr,
    line_lf,
    fields,
    body,
    done,
    failed,
  };
  Step read_line(std::string_view bytes, RequestHead& head);
  Step line_byte(char c, RequestHead& head);
  Step read_method(std::string_view bytes, RequestHead& head);
  Step read_target(std::string_view bytes, RequestHead& head);
  Result<ParseResult> end_head(std::size_t consumed, RequestHead& head);
  Result<ParseResult> fail(FaultKind kind, const char* error);

  FieldSection section_;
  BodyReader body_;
  Limits limits_;
  State state_ = State::start;
  std::uint8_t at_ = 0;  // position in the version
  FaultKind kind_ = FaultKind::malformed_request;
};

// ResponseReader: parses responses of an origin.
class ResponseReader {
 public:
  explicit ResponseReader(const Limits& limits) : limits_(limits) {}
  ResponseReader(const ResponseReader&) = delete;
  ResponseReader& operator=(const ResponseReader&) = delete;

  // Sets the request that the next response belongs to: HEAD has no body; CONNECT 2xx and a requested 101 end in
  // Progress::upgraded. `bare_lf`: head lines may end in LF alone (origin.upstream.lenient).
  void expect(std::string_view request_method, bool upgrade_asked, bool bare_lf = false);
  // Reports 1xx heads as Progress::head with status < 200; call feed() again for the final response.
  // Faults: malformed_response, response_head_too_large, informational_limit. `layouts`: as for a request.
  Result<ParseResult> feed(std::string_view bytes, ResponseHead& head, BodySink& sink, FieldLayouts* layouts = nullptr);
  // Called on the origin's FIN. Returns Progress::message if the message is delimited by close. Otherwise a Fault:
  // connection_terminated before any byte, response_incomplete inside a message.
  Result<Progress> finish();
  // Returns the bytes left of a body whose head announced its length; 0 with another framing.
  std::uint64_t body_left() const { return state_ == State::body ? body_.length_left() : 0; }
  // Counts bytes of such a body that do not pass feed(): at most body_left(). Returns true after its last byte.
  bool skip_body(std::uint64_t bytes);
  bool any_byte() const { return any_byte_; }  // of the final response or of a 1xx

 private:
  enum class State : std::uint8_t { start, version, status, reason, line_lf, fields, body, done, upgraded, failed };
  Result<ParseResult> feed_head(std::string_view bytes, ResponseHead& head, FieldLayouts* layouts);
  Result<ParseResult> feed_with_bare_lf(std::string_view bytes, ResponseHead& head);
  Step read_line(std::string_view bytes, ResponseHead& head);
  std::size_t usual_start(std::string_view bytes, ResponseHead& head);
  const char* line_byte(char c, ResponseHead& head);
  const char* status_byte(char c, ResponseHead& head);
  Result<ParseResult> end_head(std::size_t consumed, ResponseHead& head);
  Result<ParseResult> fail(FaultKind kind, const char* error);

  FieldSection section_;
  BodyReader body_;
  Limits limits_;
  State state_ = State::start;
  std::uint8_t at_ = 0;  // position in the version, then in the status
  Informational informational_;
  bool any_byte_ = false;
  bool head_request_ = false;
  bool connect_ = false;
  bool upgrade_asked_ = false;
  bool bare_lf_ = false;
  bool after_cr_ = false;  // with bare_lf_: the last byte of the head was CR
};

// The writers append to `out` and never fail.
void write_chunk_head(std::string& out, std::size_t size);
void write_last_chunk(std::string& out, const Fields& trailers);

}  // namespace carpool::proxy::http
