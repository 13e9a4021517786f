#include "proxy/downstream/request_pacer.h"

#include <deque>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/session_world.h"

namespace carpool::proxy {
namespace {

constexpr std::uint32_t kClient = RequestPacer::kClientRequests, kLoop = RequestPacer::kLoopRequests;

// A client with requests that it has to begin.
class Client final : public PacedClient {
 public:
  Client(RequestPacer& pacer, std::uint32_t requests, std::vector<Client*>& order)
      : pacer_(pacer), left_(requests), order_(order) {}
  void begin(std::uint32_t allowance) LOOP_ONLY {
    order_.push_back(this);
    for (; allowance != 0 && left_ != 0; --allowance, --left_) pacer_.note_begun();
    if (left_ != 0) pacer_.wait(*this);
  }
  void continue_requests() override LOOP_ONLY { begin(pacer_.allowance()); }
  std::uint32_t left() const { return left_; }

 private:
  RequestPacer& pacer_;
  std::uint32_t left_;
  std::vector<Client*>& order_;
};

class TheRequestPacer : public ::testing::Test {
 protected:
  void add(std::size_t clients, std::uint32_t requests) {
    for (std::size_t n = 0; n < clients; ++n) all_.emplace_back(pacer_, requests, order_);
  }
  std::uint32_t left() const {
    std::uint32_t sum = 0;
    for (const Client& client : all_) sum += client.left();
    return sum;
  }
  void turn() LOOP_ONLY { loop_.deferred.run_turn(1000); }

  const Instant now_{};
  test::SimLoop loop_{0, now_};
  RequestPacer pacer_{loop_};
  std::vector<Client*> order_;
  std::deque<Client> all_;
};

TEST_F(TheRequestPacer, LetsAClientBeginItsShareAndTheNextRoundTheRest) {
  exec::assume_on_loop();
  add(1, kClient * 2);
  all_[0].begin(pacer_.allowance_when_ready());
  EXPECT_EQ(all_[0].left(), kClient);
  turn();
  EXPECT_EQ(all_[0].left(), 0U);
}

TEST_F(TheRequestPacer, HoldsClientsThatBecomeReadyToOneRequestOnceTheLoopHasBegunItsShare) {
  exec::assume_on_loop();
  constexpr std::size_t kClients = 200;
  add(kClients, 100);
  for (Client& client : all_) client.begin(pacer_.allowance_when_ready());
  EXPECT_EQ(pacer_.allowance(), 0U);
  EXPECT_EQ(left(), kClients * 100 - kLoop - (kClients - kLoop / kClient));
  for (const Client& client : all_) EXPECT_LT(client.left(), 100U);
}

TEST_F(TheRequestPacer, ContinuesTheClientsInOrderAndNoMoreOfThemThanARoundHolds) {
  exec::assume_on_loop();
  add(40, 100);
  for (Client& client : all_) pacer_.wait(client);
  for (std::uint32_t round = 1; round <= 5; ++round) {
    const std::uint32_t before = left();
    turn();
    EXPECT_EQ(before - left(), kLoop);
  }
  ASSERT_EQ(order_.size(), 5U * (kLoop / kClient));
  for (std::size_t n = 0; n < order_.size(); ++n) EXPECT_EQ(order_[n], &all_[n % all_.size()]) << n;
}

TEST_F(TheRequestPacer, ForgetsAClientThatIsDestroyedWhileItWaits) {
  exec::assume_on_loop();
  add(3, 1);
  for (Client& client : all_) pacer_.wait(client);
  all_.pop_front();
  turn();
  EXPECT_EQ(order_.size(), 2U);
  EXPECT_EQ(left(), 0U);
}

TEST_F(TheRequestPacer, IsQuietWhenNoRequestIsLeft) {
  exec::assume_on_loop();
  add(1, 1);
  all_[0].begin(pacer_.allowance_when_ready());
  turn();
  EXPECT_TRUE(loop_.deferred.empty());
}

}  // namespace
}  // namespace carpool::proxy
