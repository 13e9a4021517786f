// BufferedRequest: HTTP/1.1 requests to carpool itself, one at a time, each whole with its small body. What a client
// sends behind one waits until that one is answered.
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
  enum class Got : std::uint8_t {
    nothing,    // more has to come first
    partial,    // of a request
    request,    // head() and body() until done()
    malformed,  // fault(); the last thing that is read
    closed,     // the connection did, or failed
  };
  // `most`: bytes of a body; a longer one is read to its end, so that its refusal arrives, and too_long() says it.
  BufferedRequest(const http::Limits& limits, std::size_t most) : reader_(limits), most_(most) {}

  // Reads once at most, into `scratch`.
  Got read(net::Transport& transport, std::span<char> scratch);
  void done();

  const http::RequestHead& head() const { return head_; }
  const std::string& body() const { return body_; }
  bool too_long() const { return too_long_; }
  const Fault& fault() const { return fault_; }
  // Nothing of the next request has been read.
  bool at_rest() const { return pending_.empty() && reader_.at_boundary(); }
  // Whoever sends no requests any more is not listened to.
  void forget() { pending_.clear(); }

 private:
  Got take(std::string_view bytes);
  void on_body(std::string_view bytes) override;
  void on_trailer(std::string_view, std::string_view) override {}

  http::RequestReader reader_;
  const std::size_t most_;
  http::RequestHead head_;
  std::string body_, pending_;
  bool too_long_ = false;
  Fault fault_{FaultKind::malformed_request, Side::client};
};

}  // namespace carpool::proxy
