// Unit tests of a session that is silent or suspect, and of PINGs behind a slow upload.
#include "tests/unit/upstream_silent_session.h"

namespace carpool::test {
namespace {

using proxy::http::Framing;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Origin = ObedientOrigin;

class ASilentSession : public SilentSession {};

TEST_F(ASilentSession, SendsOnlyAPingUntilItIsAnswered) {
  establish();
  rest(seconds(5));
  near_.ask("GET");
  send();
  EXPECT_EQ(pings(), 1U);
  EXPECT_EQ(heads(), 0U);
  answer();
  send();
  EXPECT_EQ(heads(), 1U);
  answer_newest();
}

// A server of gRPC ends a session after the fourth PING without a frame of a response, unless five minutes are between
// them.
TEST_F(ASilentSession, IsAskedAgainAfterItHasAnsweredAsOftenAsAServerOfGrpcAccepts) {
  establish();
  near_.ask("GET");
  send();
  const auto seconds_of_pings = [this](int most) {
    std::vector<int> all;
    for (int passed = 5; passed <= most; passed += 5) {
      const std::size_t before = pings();
      rest(seconds(5));
      EXPECT_EQ(near_.failures, 0U);
      send();
      if (pings() != before) all.push_back(passed);
      answer();
      turn(0);
    }
    return all;
  };
  EXPECT_EQ(seconds_of_pings(1000), (std::vector{5, 15, 375, 735}));
  origin_->respond("200", false);
  answer();
  turn(0);
  EXPECT_EQ(seconds_of_pings(100), (std::vector{5, 15}));
  origin_->session().end(*origin_->newest().stream);
  travel();
  EXPECT_EQ(near_.ends, 1U);
}

TEST_F(ASilentSession, ThatIsSuspectAgainAndAgainSendsNoMorePingsWhileAStreamIsOpen) {
  establish();
  other_.ask("GET");
  send();
  for (int times = 0; times < 8; ++times) {
    near_.ask("GET");
    send();
    answer();
    turn(0);
    send();
    world_.now += seconds(1);
    near_.leave();
    send();
  }
  EXPECT_EQ(heads(), 9U);
  EXPECT_EQ(pings(), 1U);
  EXPECT_EQ(other_.failures, 0U);
}

TEST_F(ASilentSession, SendsARequestAtOnceBeforeItIsSilentForLong) {
  establish();
  rest(seconds(5) - milliseconds(1));
  near_.ask("GET");
  send();
  EXPECT_EQ(pings(), 0U);
  EXPECT_EQ(heads(), 1U);
  answer_newest();
}

TEST_F(ASilentSession, IsSuspectOnceAClientLeavesAfterASecondWithoutAByte) {
  establish();
  ask_and_leave(seconds(1));
  near_.ask("GET");
  send();
  EXPECT_EQ(pings(), 1U);
  EXPECT_EQ(heads(), 0U);
  answer_newest();
}

TEST_F(ASilentSession, IsNotSuspectWhenAClientLeavesSooner) {
  establish();
  ask_and_leave(milliseconds(999));
  near_.ask("GET");
  send();
  EXPECT_EQ(pings(), 0U);
  EXPECT_EQ(heads(), 1U);
  answer_newest();
}

TEST_F(ASilentSession, IsNotSuspectForItsRestBeforeTheRequest) {
  establish();
  rest(seconds(4));
  ask_and_leave(milliseconds(500));
  near_.ask("GET");
  send();
  EXPECT_EQ(pings(), 0U);
  EXPECT_EQ(heads(), 1U);
  answer_newest();
}

TEST_F(ASilentSession, IsNotSuspectWhenBytesCameAfterTheRequest) {
  establish();
  near_.ask("GET");
  send();
  world_.now += seconds(2);
  origin_->session().ping(1);
  answer();
  send();
  near_.leave();
  near_.ask("GET");
  send();
  EXPECT_EQ(heads(), 2U);
  answer_newest();
}

TEST_F(ASilentSession, StaysSuspectWhenALaterClientLeavesAtOnce) {
  establish();
  near_.ask("GET");
  send();
  world_.now += seconds(1);
  other_.ask("GET");
  send();
  near_.leave();
  other_.leave();
  send();
  origin_->frames.clear();
  near_.ask("GET");
  send();
  EXPECT_EQ(pings(), 1U);
  EXPECT_EQ(heads(), 0U);
  answer_newest();
}

TEST_F(ASilentSession, IsNoLongerSuspectOnceAByteCame) {
  establish();
  ask_and_leave(seconds(1));
  origin_->session().ping(1);
  answer();
  send();
  origin_->frames.clear();
  near_.ask("GET");
  send();
  EXPECT_EQ(heads(), 1U);
  answer_newest();
}

TEST_F(ASilentSession, EndsSoonerIfItIsSuspect) {
  establish();
  ask_and_leave(seconds(1));
  near_.ask("GET");
  send();
  ASSERT_EQ(pings(), 1U);
  rest(milliseconds(999));
  EXPECT_EQ(near_.failures, 0U);
  rest(milliseconds(1));
  EXPECT_EQ(near_.failures, 1U);
  EXPECT_EQ(closed_for(pool::CloseCause::unhealthy), 1U);
}

TEST_F(ASilentSession, EndsThreeSecondsAfterAPing) {
  establish();
  rest(seconds(5));
  near_.ask("GET");
  send();
  rest(seconds(3) - milliseconds(1));
  EXPECT_EQ(near_.failures, 0U);
  rest(milliseconds(1));
  EXPECT_EQ(near_.failures, 1U);
}

// The timer sends the PING for a request that waits; the next request waits for the same one.
TEST_F(ASilentSession, HoldsARequestUntilAPingThatIsOnItsWayIsAnswered) {
  establish();
  near_.ask("GET");
  send();
  rest(seconds(5));
  send();
  ASSERT_EQ(pings(), 1U);
  near_.leave();
  send();
  other_.ask("GET");
  send();
  EXPECT_EQ(pings(), 1U);
  EXPECT_EQ(heads(), 1U) << "that of the first request";
  answer();
  send();
  EXPECT_EQ(heads(), 2U);
  travel();
  origin_->respond("200", true);
  travel();
  EXPECT_EQ(other_.ends, 1U);
}

TEST_F(ASilentSession, HoldsARequestAlsoBesideAnOpenStreamUntilThePingOnItsWayIsAnswered) {
  establish();
  near_.ask("GET");
  third_.ask("GET");
  send();
  rest(seconds(5));
  send();
  ASSERT_EQ(pings(), 1U);
  third_.leave();
  send();
  other_.ask("GET");
  send();
  EXPECT_EQ(pings(), 1U);
  EXPECT_EQ(heads(), 2U) << "those of the first requests";
  answer();
  send();
  EXPECT_EQ(heads(), 3U);
}

TEST_F(ASilentSession, WithoutStreamsIsAskedBeforeEachRequest) {
  establish();
  for (int n = 0; n < 3; ++n) {
    rest(seconds(5));
    near_.ask("GET");
    send();
    EXPECT_EQ(pings(), 1U) << n;
    EXPECT_EQ(heads(), 0U) << n;
    answer();
    send();
    EXPECT_EQ(heads(), 1U) << n;
    near_.leave();
    send();
    origin_->frames.clear();
  }
}

// A PING would wait behind the bytes that the socket does not take.
TEST_F(ASilentSession, SendsNoPingBehindUnsentBytes) {
  establish();
  wire().room = 0;
  near_.ask("GET");
  turn(0);
  near_.leave();
  rest(seconds(6));
  near_.ask("GET");
  turn(0);
  wire().room = std::size_t{1} << 20;
  send();
  send();
  EXPECT_EQ(pings(), 0U);
  EXPECT_EQ(heads(), 2U);
  answer_newest();
}

class ASlowUpload : public SilentSession {
 protected:
  // Sends a request body that fills the wire.
  void begin() {
    proxy::http::H2Options options;
    options.stream_window = options.window = 1'000'000;
    establish(options);
    wire().room = 50'000;
    near_.ask("POST", Framing::chunked);
    near_.say(300'000);
    turn(0);
  }
};

TEST_F(ASlowUpload, EndsNoSessionWhileItsOriginTakesWhatPrecedesThePing) {
  begin();
  std::size_t received = 0;
  while (received < 300'000) {
    rest(seconds(2));
    origin_->receive(wire().deliver_up(10'000), world_.now);
    answer();
    turn(0);
    received = origin_->newest().received;
    ASSERT_EQ(near_.failures, 0U) << "after " << received << " bytes";
  }
  EXPECT_EQ(pings(), 2U);
}

TEST_F(ASlowUpload, EndsWithItsSessionWhenItsOriginTakesNothing) {
  begin();
  rest(seconds(5));
  rest(seconds(3) - milliseconds(1));
  EXPECT_EQ(near_.failures, 0U);
  rest(milliseconds(1));
  EXPECT_EQ(near_.failures, 1U);
  EXPECT_EQ(closed_for(pool::CloseCause::unhealthy), 1U);
}

// A moment before, the origin's system had acknowledged all that precedes the PING.
TEST_F(ASlowUpload, EndsWithItsSessionWhenNothingPrecedesThePingAnyMore) {
  begin();
  rest(seconds(5));
  origin_->receive(wire().deliver_up(SIZE_MAX), world_.now);
  turn(0);
  rest(seconds(3));
  EXPECT_EQ(near_.failures, 0U) << "some of it was on its way";
  rest(seconds(3));
  EXPECT_EQ(near_.failures, 1U);
}

TEST_F(ASlowUpload, EndsWithItsSessionSoonAfterWhatPrecedesThePingWasTaken) {
  begin();
  rest(seconds(5));
  origin_->receive(wire().deliver_up(SIZE_MAX), world_.now);
  turn(0);
  for (int n = 0; n < 5; ++n) rest(milliseconds(750));
  EXPECT_EQ(near_.failures, 1U) << "a quarter of the time later, not a whole one";
}

}  // namespace
}  // namespace carpool::test
