// Unit tests of Listener: to which loop it gives a client.
#include "proxy/downstream/listener.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "metrics/registry.h"
#include "proxy/downstream/client_acceptor.h"
#include "proxy/exchange/overload_state.h"
#include "proxy/telemetry/loop_stats.h"
#include "tests/unit/net_support.h"

namespace carpool::proxy {
namespace {

class ReceivingLoop final : public ClientAcceptor {
 public:
  explicit ReceivingLoop(exec::Loop& loop) : loop_(loop) {}
  exec::Loop& loop() override { return loop_; }
  void accept(Listener& listener, Fd socket, std::string) override { held_.emplace_back(&listener, std::move(socket)); }
  void close_one() {
    held_.back().first->on_client_closed();
    held_.pop_back();
    note_client_closed();
  }
  std::size_t held() const { return held_.size(); }

 private:
  exec::Loop& loop_;
  std::vector<std::pair<Listener*, Fd>> held_;
};

class AListener : public testing::Test {
 protected:
  AListener() {
    exec::assume_on_loop();
    config::Listen settings;
    settings.address = "127.0.0.1:0";
    listener_ =
        std::make_unique<Listener>(settings, Listener::Parts{{&first_, &second_}, &stats_, &overload_, nullptr});
    EXPECT_TRUE(listener_->open());
    EXPECT_TRUE(listener_->start());
  }
  ~AListener() override {
    exec::assume_on_loop();
    while (first_.held() != 0) first_.close_one();
    while (second_.held() != 0) second_.close_one();
    listener_.reset();
  }
  // Returns the loop that received a client which connects now.
  char receiver() {
    const std::size_t before = first_.held(), both = before + second_.held();
    clients_.push_back(net::connect_to(listener_->address()));
    EXPECT_TRUE(loop_.until([&] { return first_.held() + second_.held() > both; }));
    return first_.held() > before ? 'a' : 'b';
  }

  net::TurnedLoop loop_;
  metrics::Registry registry_{1, 10};
  LoopStats stats_{registry_, log::Format::json, *loop_};
  OverloadState overload_;
  ReceivingLoop first_{*loop_}, second_{*loop_};
  std::unique_ptr<Listener> listener_;
  std::vector<Fd> clients_;
};

TEST_F(AListener, GivesClientsToTheLoopWithTheFewest) {
  std::string order;
  for (int n = 0; n < 6; ++n) order += receiver();
  ASSERT_EQ(order, "ababab");
  for (int n = 0; n < 2; ++n) second_.close_one();
  order.clear();
  for (int n = 0; n < 4; ++n) order += receiver();
  EXPECT_EQ(order, "bbab");
}

TEST_F(AListener, KeepsAClientThatComesAloneOnTheAcceptingLoop) {
  for (int n = 0; n < 3; ++n) {
    ASSERT_EQ(receiver(), 'a');
    first_.close_one();
  }
  EXPECT_EQ(listener_->clients(), 0U);
}

TEST_F(AListener, CountsAClientBeforeItsLoopHasReceivedIt) {
  first_.expect_client();
  EXPECT_EQ(receiver(), 'b');
}

}  // namespace
}  // namespace carpool::proxy
