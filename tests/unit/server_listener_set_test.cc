// Unit tests of a reload of the listeners: what it reports of those that keep their settings or do not accept.
#include "proxy/server/listener_set.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "proxy/downstream/client_acceptor.h"
#include "tests/unit/net_support.h"

namespace carpool::proxy {
namespace {

class AListenerSet : public testing::Test, private ClientAcceptor {
 protected:
  AListenerSet() {
    exec::assume_on_loop();
    Listener::Parts parts;
    ClientAcceptor& acceptor = *this;
    parts.acceptors.push_back(&acceptor);
    set_.set_parts(std::move(parts));
    settings_.address = "127.0.0.1:0";
    EXPECT_TRUE(set_.open(settings_, std::nullopt));
  }
  exec::Loop& loop() override { return *loop_; }
  void accept(Listener&, Fd, std::string) override {}

  AppliedListeners change() {
    exec::assume_on_loop();
    ListenerChanges changes;
    changes.changing.push_back({settings_, nullptr, nullptr});
    return set_.apply(changes);
  }
  AppliedListeners open(const std::string& address, Fd socket) {
    exec::assume_on_loop();
    config::Listen settings;
    settings.address = address;
    net::Bound bound;
    bound.fd = std::move(socket);
    bound.address = *net::Address::parse(address);
    ListenerChanges changes;
    changes.opening.push_back({std::move(settings), std::move(bound), nullptr, nullptr});
    return set_.apply(changes);
  }

  net::TurnedLoop loop_;
  config::Listen settings_;
  ListenerSet set_;
};

TEST_F(AListenerSet, ReportsAListenerThatKeepsItsSettings) {
  AppliedListeners applied;
  for (int i = 0; i < 1000 && applied.not_applied.empty(); ++i) {
    settings_.max_connections += 1;
    applied = change();
  }
  ASSERT_EQ(applied.not_applied.size(), 1U);
  EXPECT_NE(applied.not_applied.front().find(settings_.address), std::string::npos);
  EXPECT_TRUE(applied.not_open.empty());
  EXPECT_NE(set_.open_ones().front()->settings().max_connections, settings_.max_connections);
}

TEST_F(AListenerSet, ReportsAListenerThatDoesNotAcceptAndDoesNotCountItAsOpen) {
  const std::string address = "127.0.0.1:1";
  const AppliedListeners applied = open(address, Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
  EXPECT_EQ(applied.not_open, std::vector<std::string>{address});
  ASSERT_EQ(applied.not_applied.size(), 1U);
  EXPECT_NE(applied.not_applied.front().find("does not accept"), std::string::npos);
  EXPECT_EQ(set_.open_ones().size(), 1U);
  Result<net::Bound> bound = net::bind_and_listen("127.0.0.1:0", 4);
  ASSERT_TRUE(bound);
  const AppliedListeners again = open(address, std::move(bound->fd));
  EXPECT_TRUE(again.not_open.empty());
  EXPECT_TRUE(again.not_applied.empty());
  EXPECT_EQ(set_.open_ones().size(), 2U);
}

}  // namespace
}  // namespace carpool::proxy
