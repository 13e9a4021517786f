// Unit tests of the clients that a listener has accepted when it closes, with real sockets on a loop in memory.
#include <sys/socket.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/data_plane.h"
#include "tests/unit/net_tls_support.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kLocalRequest = "OPTIONS * HTTP/1.1\r\nHost: a.test\r\nMax-Forwards: 0\r\n\r\n";

class AClosedListener : public ::testing::Test {
 protected:
  void open() {
    exec::assume_on_loop();
    plane_.listen.address = "127.0.0.1:0";
    plane_.listener.change(plane_.listen);
    ASSERT_TRUE(plane_.listener.open());
    ASSERT_TRUE(plane_.listener.start());
  }
  Fd connect() const {
    const net::Address& address = plane_.listener.address();
    Fd socket(::socket(AF_INET, SOCK_STREAM, 0));
    EXPECT_EQ(0, ::connect(socket.get(), address.get(), address.length()));
    return socket;
  }
  // A reload removes the listener. Those who wait are accepted.
  void close() {
    exec::assume_on_loop();
    plane_.listener.accept_waiting_and_close();
    plane_.clients.drain_those_of({&plane_.listener});
  }
  // Reports to each client that it can read.
  void receive() {
    exec::assume_on_loop();
    const auto watchers = plane_.loop.watchers;
    for (const auto& [fd, watcher] : watchers) {
      net::wait_readable(fd);
      watcher->on_ready({true, true, false});
    }
    plane_.turn();
  }
  void say(const Fd& peer, std::string_view bytes) {
    ASSERT_EQ(static_cast<ssize_t>(bytes.size()), ::send(peer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
    receive();
  }
  static std::string received(const Fd& peer) {
    std::array<char, 4096> bytes{};
    const ssize_t size = ::recv(peer.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    return {bytes.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
  }
  void wait() {
    plane_.pass(1s);
    plane_.turn();  // those who closed are destroyed
  }
  std::uint32_t clients() const { return plane_.listener.clients(); }

  test::DataPlane plane_;
};

TEST_F(AClosedListener, LeavesNoClientInTheCountOfItsLoop) {
  open();
  std::vector<Fd> peers;
  while (peers.size() < 3) peers.push_back(connect());
  close();
  EXPECT_EQ(3U, plane_.clients.clients());
  peers.clear();
  receive();
  wait();
  EXPECT_EQ(0U, plane_.clients.clients());
}

TEST_F(AClosedListener, HasAcceptedEveryClientThatConnectedBefore) {
  open();
  std::vector<Fd> peers;
  while (peers.size() < 100) peers.push_back(connect());
  close();
  EXPECT_EQ(100U, clients());
}

class AClosedListenerOfAnnouncedClients : public AClosedListener {
 protected:
  AClosedListenerOfAnnouncedClients() {
    plane_.listen.proxy_protocol = true;
    plane_.listen.trusted = {"127.0.0.1"};
    open();
    peer_ = connect();
    close();
    EXPECT_EQ(1U, clients());
    say(peer_, "PROXY UNKNOWN\r\n");
    EXPECT_EQ(1U, clients());
  }
  Fd peer_;
};

TEST_F(AClosedListenerOfAnnouncedClients, ServesOneMoreRequestOfAClientThatItAcceptedBefore) {
  say(peer_, kLocalRequest);
  const std::string reply = received(peer_);
  EXPECT_EQ(0U, reply.find("HTTP/1.1 200")) << reply;
  EXPECT_NE(std::string::npos, reply.find("Connection: close\r\n")) << reply;
}

TEST_F(AClosedListenerOfAnnouncedClients, IsLeftByAClientThatDoesNotAsk) {
  wait();
  EXPECT_EQ(0U, clients());
}

class AClosedTlsListener : public AClosedListener {
 protected:
  AClosedTlsListener() {
    plane_.listener.set_identity(identity_);
    open();
    Fd socket = connect();
    net::prepare_socket(socket.get());
    client_ = tls::TlsTransport::client(*trusting_, std::move(socket), "localhost", 443);
    close();
    EXPECT_EQ(1U, clients());
    for (int flights = 0; flights < 10; ++flights) {
      const Result<bool> done = client_->handshake();
      EXPECT_TRUE(done);
      receive();
      if (!done || *done) break;
      net::wait_readable(client_->fd());
      client_->on_readiness({true, true, false});
    }
    EXPECT_EQ(1U, plane_.registry.count(metrics::ClientHandshake::full));
    EXPECT_EQ(1U, clients());
  }
  std::shared_ptr<tls::ServerContext> identity_{tls::serve()};
  std::unique_ptr<tls::ClientContext> trusting_ = tls::trust(*identity_);
  std::unique_ptr<tls::TlsTransport> client_;
};

TEST_F(AClosedTlsListener, IsLeftByAClientThatWasInsideItsHandshake) {
  wait();
  EXPECT_EQ(0U, clients());
}

TEST_F(AClosedListener, IsLeftByAClientWhoseConnectIsIntercepted) {
  exec::assume_on_loop();
  open();
  const Fd outer = connect();
  close();
  auto [ours, theirs] = net::tcp_pair();
  auto connect = std::make_unique<InterceptedConnect>();
  connect->identity = tls::serve();
  connect->slot = plane_.registry.add_origin("https://localhost");
  connect->point = std::make_unique<ListenPoint>(
      plane_.listener.point(), Interception{*pool::canonical_origin(pool::Scheme::https, "localhost:443")});
  ClientOwner& owner = plane_.clients;
  owner.intercept(plane_.listener, std::move(connect), std::move(ours), "peer", true);
  plane_.pass(1s);
  EXPECT_EQ(1U, plane_.registry.count(metrics::ClientHandshake::failed)) << "it has no longer than a drain";
}

}  // namespace
}  // namespace carpool::proxy
