// Unit tests of the messages between a process and its successor.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "proxy/server/handover/dial_pace.h"
#include "proxy/server/handover/fd_message.h"
#include "proxy/server/handover/handover_client.h"
#include "proxy/server/handover/handover_message.h"
#include "proxy/server/handover/handover_state.h"

namespace carpool::proxy {
namespace {

HandoverState sample() {
  HandoverState state;
  state.sockets = {{"listen", "127.0.0.1:3128"}, {"admin", "unix:/run/a path/admin.sock"}};
  state.origins.push_back({"https://a.test", 12, std::chrono::milliseconds(4500), 18446744073709551615U, 9, {}});
  state.origins.back().sessions = {std::string("\0\x01\xff\n ", 5), "x"};
  state.origins.push_back({"http://b.test:8080", 0, std::nullopt, 0, 0, {}});
  state.paused.push_back({"https://a.test", true, std::chrono::milliseconds(1500), std::chrono::milliseconds(90'000)});
  state.paused.push_back({"http://b.test:8080", false, std::chrono::milliseconds(0), std::nullopt});
  return state;
}

TEST(AHandoverState, ComesBackAsItWas) {
  const Result<HandoverState> back = decode_handover_state(encode(sample()));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, sample());
}

TEST(AHandoverState, ThatBreaksOffAnywhereIsRefused) {
  const std::string whole = encode(sample());
  for (std::size_t length = 0; length + 1 < whole.size(); ++length) {
    EXPECT_FALSE(decode_handover_state(whole.substr(0, length))) << length;
  }
}

TEST(AHandoverState, OfALaterVersionMaySayMore) {
  std::string text = encode(sample());
  text.insert(text.find("origin "), "weather fine\n");
  const Result<HandoverState> back = decode_handover_state(text);
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, sample());
}

TEST(AHandoverState, WithABrokenLineIsRefused) {
  EXPECT_FALSE(decode_handover_state("carpool-handover 1\norigin http://a.test many 0 0\nend\n"));
  EXPECT_FALSE(decode_handover_state("carpool-handover 1\norigin http://a.test 1 9223372036854775807 0\nend\n"));
  EXPECT_FALSE(decode_handover_state("carpool-handover 1\nsession 00\nend\n"));
  EXPECT_FALSE(decode_handover_state("carpool-handover 1\norigin http://a.test 1 0 0\nsession 0g\nend\n"));
  EXPECT_FALSE(decode_handover_state("carpool-handover 1\nsize 5\nend\n"));
  EXPECT_FALSE(decode_handover_state("carpool-handover 1\norigin http://a.test 1 0 0\nsize large\nend\n"));
  EXPECT_FALSE(decode_handover_state("carpool-handover 1\npaused http://a.test 2 0 0\nend\n"));
  EXPECT_FALSE(decode_handover_state("carpool-handover 1\npaused http://a.test 1 -5 0\nend\n"));
  EXPECT_FALSE(decode_handover_state("carpool-handover 1\npaused http://a.test 1 0 9223372036854775807\nend\n"));
  EXPECT_FALSE(decode_handover_state("carpool-handover 2\nend\n"));
  EXPECT_FALSE(decode_handover_state(""));
}

class Wire : public ::testing::Test {
 protected:
  Wire() {
    int pair[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    here_.reset(pair[0]);
    there_.reset(pair[1]);
  }
  Fd here_, there_;
  static constexpr Duration kTimeout = std::chrono::seconds(5);
};

TEST_F(Wire, CarriesDescriptorsAndAnyLengthOfText) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  const Fd end(pipe[1]);
  FdMessage fd_message;
  fd_message.text.assign(3 << 20, 'x');
  fd_message.descriptors.emplace_back(pipe[0]);
  Status sent = Done{};
  std::thread sender([&] { sent = send_fds(here_.get(), fd_message, kTimeout); });
  const Result<FdMessage> received = receive_fds(there_.get(), kTimeout);
  sender.join();
  ASSERT_TRUE(sent);
  ASSERT_TRUE(received);
  EXPECT_EQ(received->text, fd_message.text);
  ASSERT_EQ(received->descriptors.size(), 1U);
  ASSERT_EQ(::write(end.get(), "!", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(received->descriptors[0].get(), &byte, 1), 1);
  EXPECT_EQ(byte, '!');
  EXPECT_NE(::fcntl(received->descriptors[0].get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(Wire, SaysWhenTheOtherSideLeaves) {
  here_.reset();
  const Result<FdMessage> received = receive_fds(there_.get(), kTimeout);
  ASSERT_FALSE(received);
  EXPECT_NE(received.fault().detail.find("the peer closed the connection"), std::string::npos);
}

TEST_F(Wire, GivesUpOnOneThatSaysNothing) {
  EXPECT_FALSE(receive_fds(there_.get(), std::chrono::milliseconds(20)));
}

TEST_F(Wire, GivesUpOnOneThatReadsSlowly) {
  FdMessage fd_message;
  fd_message.text.assign(FdMessage::kMaxBytes, 'x');
  std::thread reader([this] {
    char byte = 0;
    while (::recv(there_.get(), &byte, 1, 0) == 1) {  // takes some seconds for all of it
    }
  });
  const Status sent = send_fds(here_.get(), fd_message, std::chrono::milliseconds(200));
  ::shutdown(here_.get(), SHUT_RDWR);
  reader.join();
  ASSERT_FALSE(sent);
  EXPECT_NE(sent.fault().detail.find("timed out"), std::string::npos) << sent.fault().detail;
}

TEST_F(Wire, TakesNoMoreThanItsBounds) {
  FdMessage fd_message;
  fd_message.text.assign(FdMessage::kMaxBytes + 1, 'x');
  EXPECT_FALSE(send_fds(here_.get(), fd_message, kTimeout));
}

using Received = HandoverMessage::Received;

bool say_all(int socket, std::string_view word) {
  return send_word(socket, word);
}

TEST_F(Wire, TakesAWordForWhatItSaysAndNotForItsLength) {
  HandoverMessage go(HandoverMessage::kGo);
  EXPECT_EQ(go.receive(there_.get()), Received::nothing);
  ASSERT_TRUE(say_all(here_.get(), "no"));
  EXPECT_EQ(go.receive(there_.get()), Received::other);
  HandoverMessage gone(HandoverMessage::kGone);
  ASSERT_TRUE(say_all(here_.get(), "gang"));
  EXPECT_EQ(gone.receive(there_.get()), Received::other);
}

TEST_F(Wire, TakesARefusalForOneOnlyWhereItMayCome) {
  HandoverMessage gone(HandoverMessage::kGone, HandoverMessage::kLate);
  ASSERT_TRUE(say_all(here_.get(), "la"));
  EXPECT_EQ(gone.receive(there_.get()), Received::nothing);
  ASSERT_TRUE(say_all(here_.get(), "te"));
  EXPECT_EQ(gone.receive(there_.get()), Received::late);
  HandoverMessage go(HandoverMessage::kGo);
  ASSERT_TRUE(say_all(here_.get(), "late"));
  EXPECT_EQ(go.receive(there_.get()), Received::other);
}

TEST_F(Wire, TakesAWordThatComesInPieces) {
  HandoverMessage gone(HandoverMessage::kGone);
  for (const char* piece : {"g", "on"}) {
    ASSERT_TRUE(say_all(here_.get(), piece));
    EXPECT_EQ(gone.receive(there_.get()), Received::nothing);
  }
  ASSERT_TRUE(say_all(here_.get(), "e, and more"));
  EXPECT_EQ(gone.receive(there_.get()), Received::word);
}

TEST_F(Wire, HearsThatTheOtherSideLeft) {
  HandoverMessage go(HandoverMessage::kGo);
  ASSERT_TRUE(say_all(here_.get(), "g"));
  EXPECT_EQ(go.receive(there_.get()), Received::nothing);
  here_.reset();
  EXPECT_EQ(go.receive(there_.get()), Received::left);
}

TEST(APaceOfDials, IsItsRateOverManySteps) {
  for (const std::uint32_t rate : {1U, 7U, 20U, 50U, 59U, 1000U, 100'000U}) {
    DialPace pace(rate);
    std::uint64_t dials = pace.step(std::chrono::milliseconds(50));
    EXPECT_GE(dials, 1U) << rate;
    for (int steps = 1; steps < 200; ++steps) dials += pace.step(std::chrono::milliseconds(50));
    EXPECT_EQ(dials, 10 * std::uint64_t{rate}) << rate;
  }
}

TEST(ASuccessor, DoesNotWaitForAProcessThatAcceptsNoConnections) {
  const std::string path = ::testing::TempDir() + "carpool-handover-" + std::to_string(::getpid());
  const net::Address where = *net::Address::parse("unix:" + path);
  const Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)), first(::socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(::bind(listener.get(), where.get(), where.length()), 0);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  ASSERT_EQ(::connect(first.get(), where.get(), where.length()), 0);  // the queue is full
  const auto successor = HandoverClient::ask("unix:" + path);
  ::unlink(path.c_str());
  ASSERT_FALSE(successor);
  EXPECT_NE(successor.fault().detail.find(path + ": the old process accepts no connections"), std::string::npos);
}

}  // namespace
}  // namespace carpool::proxy
