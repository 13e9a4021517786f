// HTTP/1.1 bytes in, messages out; no I/O. Strict, whichever version of llhttp stands behind it and however it was
// built.
//
// Readers pause by contract: feed() returns how many bytes it took and stops after a head, so that the owner can decide
// before the body flows, and after a message's end, so that the next pipelined head stays in the owner's hands. Any
// split of the bytes gives the same messages and the same kind of fault.
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

// Where body bytes and trailers go while feed() runs. The views are valid during the call only. Trailer fields that
// Connection lists do not arrive here.
class BodySink {
 public:
  virtual void on_body(std::string_view bytes) = 0;
  virtual void on_trailer(std::string_view name, std::string_view value) = 0;

 protected:
  ~BodySink() = default;
};

// The whole body as one text, for who needs all of it; trailers are dropped.
struct BodyText final : BodySink {
  void on_body(std::string_view bytes) override { text.append(bytes); }
  void on_trailer(std::string_view, std::string_view) override {}
  std::string text;
};

enum class Progress : std::uint8_t {
  need_more,  // everything was taken, the message goes on
  head,       // the head is complete; feed again for the body, even with no bytes: a message may have none
  message,    // the message is complete; the rest of the bytes belongs to what comes next
  upgraded,   // responses: 101, or 2xx to CONNECT; the head is complete, what follows is not HTTP
};

struct ParseResult {
  std::size_t taken = 0;
  Progress progress = Progress::need_more;
};

// Reads requests from a client. Small: a client at rest keeps one.
class RequestReader {
 public:
  explicit RequestReader(const Limits& limits) : limits_(limits) {}
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  // Fault kinds: malformed_request, head_too_large, target_too_long, not_implemented (unknown transfer coding, another
  // major version, a method without end). After a fault the connection can only be answered and closed.
  // `head` is the same one throughout a message; it is cleared when its first byte comes.
  Result<ParseResult> feed(std::string_view bytes, RequestHead& head, BodySink& sink);
  // The client's FIN. True: between messages. False: inside one.
  bool at_boundary() const { return state_ <= State::second_start || state_ == State::done; }
  // True once any byte of the current head was seen (header_timeout runs from there), until it is complete.
  bool in_head() const { return state_ > State::second_start && state_ <= State::fields; }
  void reset() { state_ = State::start; }  // for the next message

 private:
  enum class State : std::uint8_t {
    start,
    empty_line,    // one CRLF in front of a request is skipped (RFC 9112 §2.2)
    second_start,  // behind it
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
  Result<ParseResult> end_head(std::size_t taken, RequestHead& head);
  Result<ParseResult> fail(FaultKind kind, const char* wrong);

  FieldSection section_;
  BodyReader body_;
  Limits limits_;
  State state_ = State::start;
  std::uint8_t at_ = 0;  // in the version
  FaultKind kind_ = FaultKind::malformed_request;
};

// Reads responses of an origin.
class ResponseReader {
 public:
  explicit ResponseReader(const Limits& limits) : limits_(limits) {}
  ResponseReader(const ResponseReader&) = delete;
  ResponseReader& operator=(const ResponseReader&) = delete;

  // Expect the answer to this request: HEAD has no body, CONNECT 2xx and an asked-for 101 end in Progress::upgraded.
  // `bare_lf`: lines of the head may end in LF alone (origin.upstream.lenient).
  void expect(std::string_view request_method, bool upgrade_asked, bool bare_lf = false);
  // 1xx heads are reported as Progress::head with status < 200; feed on for the final one.
  // Fault kinds: malformed_response, response_head_too_large, informational_limit.
  Result<ParseResult> feed(std::string_view bytes, ResponseHead& head, BodySink& sink);
  // The origin's FIN. A message that is delimited by close is complete now: Progress::message. Else a Fault:
  // connection_terminated before any byte, response_incomplete inside.
  Result<Progress> finish();
  bool any_byte() const { return any_byte_; }  // of the final response or of a 1xx

 private:
  enum class State : std::uint8_t { start, version, status, reason, line_lf, fields, body, done, upgraded, failed };
  Result<ParseResult> feed_head(std::string_view bytes, ResponseHead& head);
  Result<ParseResult> feed_with_bare_lf(std::string_view bytes, ResponseHead& head);
  Step read_line(std::string_view bytes, ResponseHead& head);
  std::size_t usual_start(std::string_view bytes, ResponseHead& head);
  const char* line_byte(char c, ResponseHead& head);
  const char* status_byte(char c, ResponseHead& head);
  Result<ParseResult> end_head(std::size_t taken, ResponseHead& head);
  Result<ParseResult> fail(FaultKind kind, const char* wrong);

  FieldSection section_;
  BodyReader body_;
  Limits limits_;
  State state_ = State::start;
  std::uint8_t at_ = 0;  // in the version, then in the status
  Informational informational_;
  bool any_byte_ = false;
  bool head_request_ = false;
  bool connect_ = false;
  bool upgrade_asked_ = false;
  bool bare_lf_ = false;
  bool after_cr_ = false;  // with bare_lf_: the last byte of the head was CR
};

// Writers append to `out` and never fail.
void write_chunk_head(std::string& out, std::size_t size);
void write_last_chunk(std::string& out, const Fields& trailers);

}  // namespace carpool::proxy::http
