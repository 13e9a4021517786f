// Unit tests of read_with_budget over a TCP connection on loopback.
#include "proxy/net/read_with_budget.h"

#include <string>

#include "proxy/net/plain_transport.h"
#include "tests/unit/net_support.h"

namespace carpool::proxy::net {
namespace {

class ReadingWithABudget : public ::testing::Test {
 protected:
  ReadingWithABudget() {
    auto [here, there] = tcp_pair();
    transport_ = make_plain(std::move(here));
    far_ = std::move(there);
  }
  void say(std::string_view text) {
    ASSERT_EQ(static_cast<ssize_t>(text.size()), ::send(far_.get(), text.data(), text.size(), MSG_NOSIGNAL));
    ASSERT_TRUE(wait_readable(transport_->fd()));
    transport_->on_readiness({.readable = true});
  }
  ReadOutcome read(std::size_t& budget) {
    exec::assume_on_loop();
    return read_with_budget(
        *loop_, *transport_, budget, [this] { return wants_; }, [this] { return most_; },
        [this](std::string_view bytes) {
          received_.append(bytes).append("|");
          return goes_on_;
        });
  }
  ReadOutcome read() {
    std::size_t budget = 1000;
    return read(budget);
  }

  TurnedLoop loop_;
  std::unique_ptr<Transport> transport_;
  Fd far_;
  bool wants_ = true, goes_on_ = true;
  std::size_t most_ = SIZE_MAX;
  std::string received_;
};

TEST_F(ReadingWithABudget, EndsWhenNothingIsLeft) {
  say("abc");
  EXPECT_EQ(ReadEnd::drained, read().end);
  EXPECT_EQ("abc|", received_);
  EXPECT_FALSE(transport_->maybe_readable());
  EXPECT_EQ(ReadEnd::drained, read().end);
}

TEST_F(ReadingWithABudget, TakesNoMoreAtATimeThanItsOwnerHasRoomFor) {
  most_ = 2;
  say("abcde");
  EXPECT_EQ(ReadEnd::drained, read().end);
  EXPECT_EQ("ab|cd|e|", received_);
}

TEST_F(ReadingWithABudget, EndsWhenTheBudgetIsUsedAndLeavesTheRest) {
  most_ = 2;
  say("abcdef");
  std::size_t budget = 3;
  EXPECT_EQ(ReadEnd::exhausted, read(budget).end);
  EXPECT_EQ("ab|cd|", received_) << "one read may exceed it";
  EXPECT_EQ(0U, budget);
  budget = 3;
  EXPECT_EQ(ReadEnd::drained, read(budget).end);
  EXPECT_EQ("ab|cd|ef|", received_);
}

TEST_F(ReadingWithABudget, ReadsNothingThatItsOwnerDoesNotWant) {
  wants_ = false;
  say("abc");
  EXPECT_EQ(ReadEnd::drained, read().end);
  EXPECT_EQ("", received_);
  EXPECT_TRUE(transport_->maybe_readable());
}

TEST_F(ReadingWithABudget, EndsWhenTheSinkStopsIt) {
  most_ = 2;
  goes_on_ = false;
  say("abcd");
  EXPECT_EQ(ReadEnd::stopped, read().end);
  EXPECT_EQ("ab|", received_);
}

TEST_F(ReadingWithABudget, ReportsTheEndAfterAllBytes) {
  say("abc");
  far_.reset();
  transport_->on_readiness({.readable = true, .hangup = true});
  const ReadOutcome outcome = read();
  EXPECT_EQ(ReadEnd::closed, outcome.end);
  EXPECT_EQ(Io::eof, outcome.io.io);
  EXPECT_EQ("abc|", received_);
}

}  // namespace
}  // namespace carpool::proxy::net
