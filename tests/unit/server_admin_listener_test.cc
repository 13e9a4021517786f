// The listener of the admin endpoint: how many clients may begin a TLS handshake in a second, and which token they
// need.
#include "proxy/server/admin/admin_listener.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "proxy/net/tls/server_context.h"
#include "tests/unit/server_admin_loop.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;

class AdminListeners : public testing::Test, public AdminListener::Owner {
 protected:
  AdminListeners() {
    exec::assume_on_loop();
    EXPECT_TRUE(listener_.open("127.0.0.1:0", std::nullopt));
  }
  void on_accept(AdminListener&, Fd) override { ++accepted_; }

  void arrive(int clients) {
    for (int i = 0; i < clients; ++i) {
      clients_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const net::Address& address = listener_.address();
      ASSERT_EQ(::connect(clients_.back().get(), address.get(), address.length()), 0);
    }
  }
  // As many turns as clients, each of which accepts some.
  void turn() {
    for (std::size_t i = 0; i < clients_.size(); ++i) loop_.turn();
  }

  HandLoop loop_;
  AdminListener listener_{loop_, *this, false};
  std::vector<Fd> clients_;
  int accepted_ = 0;
};

TEST_F(AdminListeners, LetAHundredClientsBeginAHandshakeInASecond) {
  exec::assume_on_loop();
  listener_.set_identity(std::move(*tls::ServerContext::make({})));
  arrive(120);
  turn();
  EXPECT_EQ(accepted_, 100);
  loop_.pass(900ms);
  turn();
  EXPECT_EQ(accepted_, 100);
  loop_.pass(200ms);
  turn();
  EXPECT_EQ(accepted_, 120) << "the others have waited, none was closed";
  arrive(90);
  turn();
  EXPECT_EQ(accepted_, 200);
}

TEST_F(AdminListeners, AcceptAllClientsInPlainText) {
  arrive(120);
  turn();
  EXPECT_EQ(accepted_, 120);
}

TEST_F(AdminListeners, AcceptNoClientOnAnInheritedSocketBeforeThePredecessorStops) {
  exec::assume_on_loop();
  HandLoop loop;
  AdminListener heir(loop, *this, false);
  const net::Address address = listener_.address();
  ASSERT_TRUE(heir.open("127.0.0.1:0", net::Bound{listener_.copy(), address, true}));
  listener_.stop_accepting();
  arrive(3);
  loop.turn();
  EXPECT_EQ(accepted_, 0);
  heir.begin_accepting();
  EXPECT_EQ(accepted_, 3);
  arrive(1);
  loop.turn();
  EXPECT_EQ(accepted_, 4);
}

class AListenerOfTheNetwork : public testing::Test, public AdminListener::Owner {
 protected:
  AListenerOfTheNetwork() {
    exec::assume_on_loop();
    EXPECT_TRUE(listener_.open("0.0.0.0:0", std::nullopt));
    std::ofstream(file_) << "first";
  }
  ~AListenerOfTheNetwork() override { std::filesystem::remove(file_); }
  void on_accept(AdminListener&, Fd) override {}
  std::string token() const { return listener_.rules().get().token; }

  const std::string file_ = testing::TempDir() + "carpool-admin-token-" + std::to_string(::getpid());
  HandLoop loop_;
  AdminListener listener_{loop_, *this, false};
};

TEST_F(AListenerOfTheNetwork, KeepsItsTokenIfNoneIsConfigured) {
  EXPECT_FALSE(listener_.read_token(""));
  EXPECT_TRUE(listener_.read_token(file_));
  EXPECT_EQ(token(), "first");
  EXPECT_FALSE(listener_.read_token(""));
  EXPECT_EQ(token(), "first");
}

TEST_F(AListenerOfTheNetwork, ReportsATokenThatReplacesAnotherOne) {
  const Result<bool> first = listener_.read_token(file_);
  ASSERT_TRUE(first);
  EXPECT_FALSE(*first);
  const Result<bool> same = listener_.read_token(file_);
  ASSERT_TRUE(same);
  EXPECT_FALSE(*same);
  std::ofstream(file_) << "second";
  const Result<bool> other = listener_.read_token(file_);
  ASSERT_TRUE(other);
  EXPECT_TRUE(*other);
  EXPECT_EQ(token(), "second");
}

}  // namespace
}  // namespace carpool::proxy
