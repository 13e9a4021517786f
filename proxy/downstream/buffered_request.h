// BufferedRequest: reads HTTP/1.1 requests to carpool itself, one at a time, each with its small body complete, unless
// a sink takes the body while it arrives. Pipelined requests are buffered until the current one is answered.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/fault.h"
#include "proxy/http/h1/codec.h"
#include "proxy/net/transport.h"

namespace carpool::proxy {

class BufferedRequest final : private http::BodySink {
 public:
  enum class ReadStatus : std::uint8_t {
    nothing,    // more input is needed
    partial,    // of a request was read
    head,       // only with a sink: head() is valid until done()
    request,    // complete: head() and body() are valid until done()
    malformed,  // see fault(); nothing is read after it
    closed,     // or the connection failed
  };
  // `most`: the maximum body size in bytes. A longer body is read to its end, so that the error response arrives, and
  // too_long() returns true. `sink`, if not null, receives the body instead, of any size.
  BufferedRequest(const http::Limits& limits, std::size_t most, http::BodySink* sink)
      : reader_(limits), most_(most), sink_(sink) {}

  // Reads at most once, into `scratch`.
  ReadStatus read(net::Transport& transport, std::span<char> scratch);
  void done();

  const http::RequestHead& head() const { return head_; }
  const std::string& body() const { return body_; }
  bool too_long() const { return too_long_; }
  const Fault& fault() const { return fault_; }
  // Returns true if no byte of the next request has been read.
  bool at_rest() const { return pending_.empty() && reader_.at_boundary(); }
  // Discards buffered bytes of a client that is not expected to send another request.
  void forget() { pending_.clear(); }

 private:
  ReadStatus take(std::string_view bytes);
  void on_body(std::string_view bytes) override;
  void on_trailer(std::string_view, std::string_view) override {}

  http::RequestReader reader_;
  const std::size_t most_;
  http::BodySink* const sink_;
  http::RequestHead head_;
  std::string body_, pending_;
  bool after_head_ = false;  // the reader may continue without another byte
  bool too_long_ = false;
  Fault fault_{FaultKind::malformed_request, Side::client};
};

}  // namespace carpool::proxy
