// demo_support: a client that sends and receives at once, plain or over TLS, and its responses as values.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "proxy/commands/demo/demo_origin.h"
#include "proxy/http/h1/codec.h"
#include "proxy/net/address.h"
#include "proxy/net/plain_transport.h"
#include "proxy/net/tls/client_context.h"
#include "proxy/net/tls/tls_transport.h"

namespace carpool::proxy::demo_tests {

using namespace std::chrono_literals;

struct Response final : http::BodySink {
  http::ResponseHead head;
  std::string body;
  std::string trailers;  // "name=value;"
  std::string field(std::string_view name) const { return std::string(head.fields.get(name)); }
  std::uint64_t number(std::string_view name) const { return std::stoull("0" + field(name)); }
  void on_body(std::string_view bytes) override { body += bytes; }
  void on_trailer(std::string_view name, std::string_view value, bool /*sensitive*/) override {
    trailers.append(name).append("=").append(value).append(";");
  }
};

class Caller {
 public:
  explicit Caller(const net::Address& origin) : transport_(net::make_plain(connect(origin))) {}
  // Verifies that the origin's certificate names `host`.
  Caller(const net::Address& origin, tls::ClientContext& context, const std::string& host) {
    Fd socket = connect(origin);
    net::prepare_socket(socket.get());
    auto stream = tls::TlsTransport::client(context, std::move(socket), host, origin.port());
    stream_ = stream.get();
    transport_ = std::move(stream);
  }

  // Returns true if established; a plain connection is from the start.
  Result<bool> step_handshake() {
    if (stream_ == nullptr) return true;
    for (;;) {
      Result<bool> done = stream_->handshake();
      if (!done || *done) return done;
      if (!wait(POLLIN)) return false;
    }
  }

  void say(std::string_view bytes) { out_ += bytes; }
  void ask(std::string_view path) { say("GET " + std::string(path) + " HTTP/1.1\r\nHost: demo\r\n\r\n"); }
  void end() { transport_->shut_write(); }  // after flush()

  void flush() {
    while (!out_.empty() && write_some() && !out_.empty()) wait(POLLOUT);
  }

  // Returns the next response, 1xx included, and sends pending data meanwhile. A null status: none arrived.
  std::unique_ptr<Response> receive(std::string_view method = "GET") {
    auto response = std::make_unique<Response>();
    if (!interim_) reader_->expect(method, false);
    for (;;) {
      const auto fed = reader_->feed(in_, response->head, *response);
      EXPECT_TRUE(fed) << fed.fault().detail;
      if (!fed) break;
      in_.erase(0, fed->consumed);
      interim_ = fed->progress == http::Progress::head && response->head.status < 200;
      if (interim_ || fed->progress == http::Progress::message) return response;
      if (fed->progress == http::Progress::need_more && !more()) break;
    }
    response->head.status = 0;
    return response;
  }
  std::unique_ptr<Response> get(std::string_view path) {
    ask(path);
    return receive();
  }

  // Returns true if the origin closed the connection with no data left.
  bool ended() {
    while (!eof_ && in_.empty() && more()) {
    }
    return eof_ && in_.empty();
  }

 private:
  static Fd connect(const net::Address& origin) {
    Fd fd(::socket(origin.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(fd.get(), origin.get(), origin.length()), 0);
    return fd;
  }
  bool wait(short events) const {
    pollfd waiting{transport_->fd(), events, 0};
    return ::poll(&waiting, 1, 20'000) == 1;
  }
  bool write_some() {
    const iovec piece{out_.data(), out_.size()};
    const net::IoResult io = transport_->write({&piece, 1});
    if (io.io == net::Io::ok) out_.erase(0, io.bytes);
    return io.io == net::Io::ok || io.io == net::Io::would_block;
  }
  // Returns false if nothing more will arrive.
  bool more() {
    for (;;) {
      if (!out_.empty() && !write_some()) return false;
      std::array<char, 65536> bytes;
      const net::IoResult io = transport_->read(bytes);
      if (io.io == net::Io::ok) {
        in_.append(bytes.data(), io.bytes);
        return true;
      }
      eof_ |= io.io == net::Io::eof;
      if (io.io != net::Io::would_block) return false;
      if (!wait(static_cast<short>(out_.empty() ? POLLIN : POLLIN | POLLOUT))) return false;
    }
  }

  std::unique_ptr<net::Transport> transport_;
  tls::TlsTransport* stream_ = nullptr;
  std::unique_ptr<http::ResponseReader> reader_ = std::make_unique<http::ResponseReader>(http::Limits{});
  bool interim_ = false;
  bool eof_ = false;
  std::string in_, out_;
};

// The demo's origin, and clients of either listener that trust its certificate.
class Served {
 public:
  explicit Served(const DemoOrigin::Settings& settings = {}) {
    auto made = DemoOrigin::start(settings);
    EXPECT_TRUE(made) << (made ? "" : made.fault().detail);
    origin_ = std::move(*made);
    tls::ClientSettings trust;
    trust.ca_file = origin_->ca_file();
    auto context = tls::ClientContext::make(trust);
    EXPECT_TRUE(context) << (context ? "" : context.fault().detail);
    context_ = std::move(*context);
  }
  DemoOrigin& origin() { return *origin_; }
  tls::ClientContext& trust() { return *context_; }
  void stop() { origin_.reset(); }

  Caller plain() { return Caller(origin_->plain()); }
  Caller secure(const std::string& host = DemoOrigin::kTlsName) {
    Caller caller(origin_->secure(), *context_, host);
    const auto done = caller.step_handshake();
    EXPECT_TRUE(done && *done) << (done ? "no answer" : done.fault().detail);
    return caller;
  }
  Caller caller(bool over_tls) { return over_tls ? secure() : plain(); }

 private:
  std::unique_ptr<DemoOrigin> origin_;
  std::unique_ptr<tls::ClientContext> context_;
};

}  // namespace carpool::proxy::demo_tests
