// Unit tests of a connection to the admin endpoint until its protocol is known, in plain text and over TLS.
#include "proxy/server/admin/admin_opening.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proxy/http/h2/types.h"
#include "proxy/net/plain_transport.h"
#include "proxy/net/tls/client_context.h"
#include "proxy/net/tls/server_context.h"
#include "tests/unit/server_admin_loop.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;
using HandshakeEnd = metrics::ClientHandshake;

class AdminOpenings : public testing::Test, public AdminOpening::Owner {
 protected:
  AdminOpenings() {
    exec::assume_on_loop();
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    near_.reset(ends[0]);
    far_.reset(ends[1]);
  }

  // ---- AdminOpening::Owner ----
  void opened(AdminOpening&, AdminConnection::Protocol protocol, std::unique_ptr<net::Transport> transport,
              Instant) override {
    protocol_ = protocol;
    transport_ = std::move(transport);
  }
  void ended(AdminConnection&) override { ended_ = true; }
  void count_handshake(HandshakeEnd result) override { ++handshakes_[static_cast<std::size_t>(result)]; }

  void open_plain() {
    exec::assume_on_loop();
    AdminOpening::Owner& owner = *this;
    opening_ = std::make_unique<AdminOpening>(loop_, owner, net::make_plain(std::move(near_)));
    EXPECT_TRUE(opening_->start());
  }
  void open_tls() {
    exec::assume_on_loop();
    tls::ServerSettings settings;
    settings.alpn = {"h2", "http/1.1"};
    server_ = std::move(*tls::ServerContext::make(settings));
    AdminOpening::Owner& owner = *this;
    opening_ = std::make_unique<AdminOpening>(loop_, owner, server_->accept(std::move(near_)));
    EXPECT_TRUE(opening_->start());
  }
  // Returns the client of a complete handshake; with its last flight it sends `first`.
  std::unique_ptr<tls::TlsTransport> shake(std::vector<std::string> alpn, std::string_view first = {}) {
    tls::ClientSettings settings;
    settings.verify = false;
    settings.alpn = std::move(alpn);
    context_ = std::move(*tls::ClientContext::make(settings));
    auto client = tls::TlsTransport::client(*context_, std::move(far_), "localhost", 0);
    for (int i = 0; i < 20; ++i) {
      client->on_readiness({true, true, false});
      const Result<bool> done = client->handshake();
      if (done && *done && !first.empty()) {
        const iovec piece{const_cast<char*>(first.data()), first.size()};
        EXPECT_EQ(client->write({&piece, 1}).bytes, first.size());
        first = {};
      }
      loop_.turn();
      if (protocol_ || ended_) break;
    }
    return client;
  }
  void say(std::string_view text) {
    ASSERT_EQ(::send(far_.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    loop_.turn();
  }
  unsigned handshakes(HandshakeEnd result) const { return handshakes_[static_cast<std::size_t>(result)]; }

  HandLoop loop_;
  Fd near_, far_;
  std::unique_ptr<tls::ServerContext> server_;
  std::unique_ptr<tls::ClientContext> context_;
  std::unique_ptr<AdminOpening> opening_;
  std::unique_ptr<net::Transport> transport_;
  std::optional<AdminConnection::Protocol> protocol_;
  std::array<unsigned, metrics::kClientHandshakes.size()> handshakes_{};
  bool ended_ = false;
};

TEST_F(AdminOpenings, AreHttp2OnceThePrefaceIsWholeAndReadNothingOfIt) {
  open_plain();
  say(http::kH2Preface.substr(0, 10));
  EXPECT_FALSE(protocol_ || ended_);
  say(http::kH2Preface.substr(10));
  EXPECT_EQ(protocol_, AdminConnection::Protocol::h2);
  std::array<char, 100> buffer;
  transport_->on_readiness({true, false, false});
  EXPECT_EQ(transport_->read(buffer).bytes, http::kH2Preface.size());
}

TEST_F(AdminOpenings, AreHttp11WhateverElseTheClientSends) {
  open_plain();
  say("PRI * HTTP/2.1");
  EXPECT_EQ(protocol_, AdminConnection::Protocol::h1);
}

TEST_F(AdminOpenings, EndWhenThePrefaceWillNotBeCompleted) {
  open_plain();
  say(http::kH2Preface.substr(0, 10));
  ::shutdown(far_.get(), SHUT_WR);
  loop_.turn();
  EXPECT_TRUE(ended_);
}

TEST_F(AdminOpenings, EndWithTheirDeadline) {
  open_plain();
  loop_.pass(29s);
  EXPECT_FALSE(ended_);
  loop_.pass(2s);
  EXPECT_TRUE(ended_);
  EXPECT_EQ(handshakes(HandshakeEnd::timeout), 0U);
}

TEST_F(AdminOpenings, AreWhatTheHandshakeSelects) {
  open_tls();
  const auto client = shake({"h2", "http/1.1"});
  EXPECT_EQ(protocol_, AdminConnection::Protocol::h2);
  EXPECT_EQ(handshakes(HandshakeEnd::full), 1U);
}

TEST_F(AdminOpenings, AreHttp11WithoutAlpnAndKnowWhatTheClientSentWithItsLastFlight) {
  open_tls();
  const auto client = shake({}, "GET / HTTP/1.1\r\n");
  EXPECT_EQ(protocol_, AdminConnection::Protocol::h1);
  EXPECT_TRUE(transport_->maybe_readable()) << "no event announces what TLS has read already";
  std::array<char, 100> buffer;
  const net::IoResult received = transport_->read(buffer);
  EXPECT_EQ(std::string(buffer.data(), received.bytes), "GET / HTTP/1.1\r\n");
}

TEST_F(AdminOpenings, CountHandshakesThatFail) {
  open_tls();
  say("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(ended_);
  EXPECT_EQ(handshakes(HandshakeEnd::failed), 1U);
}

TEST_F(AdminOpenings, CountHandshakesThatTakeTooLong) {
  open_tls();
  loop_.pass(31s);
  EXPECT_TRUE(ended_);
  EXPECT_EQ(handshakes(HandshakeEnd::timeout), 1U);
}

}  // namespace
}  // namespace carpool::proxy
