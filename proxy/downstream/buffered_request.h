// BufferedRequest: reads HTTP/1.1 requests to carpool itself, one at a time, each with its complete small body, unless
// a sink receives the body as it arrives. Pipelined requests are buffered until the current one is answered.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/fault.h"
#include "proxy/http/h1/codec.h"
#include "proxy/net/transport.h"

namespace carpool::proxy {

class BufferedRequest final : private http::BodySink {
 public:
  enum class ReadStatus : std::uint8_t {
    nothing,    // more input is needed
    partial,    // a part of the request was read
    head,       // only with a sink; head() is valid until done()
    request,    // complete; head() and body() are valid until done()
    malformed,  // see fault(); nothing is read after it
    closed,     // the client closed the connection, or it failed
  };
  // `max_body`: the maximum body size in bytes. A longer body is read to its end, so that the client reads the error
  // response, and too_long() returns true. If `sink` is not null, it receives the body, of any size.
  BufferedRequest(const http::Limits& limits, std::size_t max_body, http::BodySink* sink)
      : reader_(limits), max_body_(max_body), sink_(sink) {}

  // Reads at most once, into `scratch`.
  ReadStatus read(net::Transport& transport, std::span<char> scratch);
  void done();

  const http::RequestHead& head() const { return head_; }
  const std::string& body() const { return body_; }
  bool too_long() const { return too_long_; }
  // Returns true once for a request whose client waits for 100 before it sends the body (RFC 9110 §10.1.1). A sink's
  // owner answers at the head itself.
  bool take_expectation() { return std::exchange(expected_, false); }
  const Fault& fault() const { return fault_; }
  // Returns true if no byte of the next request has been read.
  bool at_rest() const { return pending_.empty() && reader_.at_boundary(); }
  // Discards buffered bytes. Call it if no further request of the client is to be read.
  void forget() { pending_.clear(); }

 private:
  ReadStatus feed(std::string_view bytes);
  void on_body(std::string_view bytes) override;
  void on_trailer(std::string_view, std::string_view, bool) override {}

  http::RequestReader reader_;
  const std::size_t max_body_;
  http::BodySink* const sink_;
  http::RequestHead head_;
  std::string body_, pending_;
  bool after_head_ = false;  // the reader may continue without another byte
  bool expected_ = false;
  bool too_long_ = false;
  Fault fault_{FaultKind::malformed_request, Side::client};
};

}  // namespace carpool::proxy
