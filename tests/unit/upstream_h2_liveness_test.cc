// Unit tests of a session that is silent, is suspect, cannot write, or is over.
#include "tests/unit/upstream_obedient_origin.h"

namespace carpool::test {
namespace {

using proxy::http::Framing;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Origin = ObedientOrigin;

class ASilentSession : public ObedientSession {
 protected:
  // A turn of the session's loop, whose output arrives and is not answered.
  void send() {
    turn(0);
    origin_->receive(wire().deliver_up(SIZE_MAX), world_.now);
  }
  std::size_t heads() const { return origin_->count(Origin::kHeaders); }
  std::size_t pings() const { return origin_->count(Origin::kPing); }
  // A request whose client leaves after this time without an answer.
  void ask_and_leave(Duration after) {
    near_.ask("GET");
    send();
    world_.now += after;
    near_.leave();
    send();
    origin_->frames.clear();
  }
  void answer_newest() {
    travel();
    origin_->respond("200", true);
    travel();
    EXPECT_EQ(near_.ends, 1U);
  }
  void rest(Duration time) {
    world_.now += time;
    turn(0);
  }
  Asker other_{world_, 0}, third_{world_, 0};
};

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

class ASlowUpload : public ASilentSession {
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

// ---- what a turn sends ----

class ABusySession : public ASilentSession {};

TEST_F(ABusySession, SendsAllThatTheWindowsAdmitInOneTurn) {
  constexpr std::size_t kSize = 300'000;
  proxy::http::H2Options options;
  options.stream_window = options.window = 1'000'000;
  establish(options);
  near_.ask("POST", Framing::chunked);
  near_.say(kSize);
  send();
  EXPECT_EQ(origin_->newest().received, kSize);
  near_.end();
  answer_newest();
}

// The client is on another loop, so the session is lent for longer than its last stream exists.
TEST_F(ABusySession, ThatIsOverSaysNothingMore) {
  establish();
  far_.ask("GET");
  travel();
  origin_->respond("200", true);
  answer();
  turn(0);
  origin_->session().goaway(proxy::http::H2Error::no_error);
  answer();
  turn(0);
  origin_->frames.clear();
  std::list<Link> ended;  // the world forgets a connection that is closed
  ended.splice(ended.begin(), world_.links);
  travel();
  origin_->receive(ended.front().wire.deliver_up(SIZE_MAX), world_.now);
  EXPECT_TRUE(ended.front().wire.left);
  EXPECT_EQ(far_.ends, 1U);
  EXPECT_EQ(closed_for(pool::CloseCause::goaway), 1U);
  EXPECT_EQ(origin_->count(Origin::kGoaway), 0U);
}

TEST_F(ABusySession, FailsItsRequestsAtOnceWhenItsOriginViolatesTheProtocol) {
  establish();
  near_.ask("GET");
  travel();
  wire().sent_down(std::string("\0\0\x04\x08\0\0\0\0\0\0\0\0\0", 13));  // WINDOW_UPDATE of the session by 0
  travel();
  EXPECT_EQ(near_.failures, 1U);
  EXPECT_EQ(origin_->count(Origin::kGoaway), 1U);
}

// RFC 9113 §5.1.1: the identifiers of a session are used up at 2^31 - 1.
TEST_F(ABusySession, RetiresWithTheLastStreamIdentifier) {
  establish();
  exec::assume_on_loop();
  world_.links.front().connection->session().skip_streams(0x7FFFFFFF);
  near_.ask("GET");
  travel();
  EXPECT_EQ(origin_->newest().id, 0x7FFFFFFF);
  EXPECT_EQ(closed_for(pool::CloseCause::max_usage), 0U) << "its last request runs";
  origin_->respond("200", true);
  travel();
  EXPECT_EQ(near_.ends, 1U);
  EXPECT_EQ(closed_for(pool::CloseCause::max_usage), 1U);
}

// ---- a write fails ----

// The response is in the socket, and its event has not arrived, when unsent bytes cannot be written.
TEST_F(ABusySession, ThatCannotWriteReadsFirst) {
  establish();
  near_.ask("GET");
  travel();
  origin_->respond("200", true);
  answer();
  wire().ready = false;
  wire().room = 0;
  other_.ask("GET");
  turn(0);
  ASSERT_TRUE(wire().full);
  wire().room = std::size_t{1} << 20;
  wire().write_closed = true;
  turn(0);
  turn(0);
  turn(0);
  EXPECT_EQ(near_.ends, 1U);
  EXPECT_EQ(near_.failures, 0U) << near_.why;
  EXPECT_EQ(other_.failures, 1U);
}

// There is more in the socket than a turn reads.
TEST_F(ABusySession, ThatCannotWriteReadsForSeveralTurns) {
  establish();
  constexpr std::size_t kWide = 512 * 1024, kRest = 130'000;  // of a response until its window is wide, and after that
  const std::initializer_list<Asker*> readers{&near_, &other_, &third_};
  static_assert(3 * kRest > proxy::kTurnBytes + 64 * 1024);
  std::vector<Origin::Request*> requests;
  for (Asker* reader : readers) {
    reader->ask("GET");
    travel();
    origin_->respond("200", false);
    requests.push_back(&origin_->newest());
    origin_->send_body(*requests.back(), kWide);
    travel();
    ASSERT_EQ(reader->received, kWide);
  }
  for (Origin::Request* request : requests) {
    origin_->send_body(*request, kRest);
    origin_->session().end(*request->stream);
  }
  answer();
  for (Origin::Request* request : requests) ASSERT_EQ(request->stream, nullptr) << "all is sent";
  wire().ready = false;
  wire().write_closed = true;
  Asker late{world_, 0};
  late.ask("GET");
  for (int turns = 0; turns < 10; ++turns) turn(0);
  for (Asker* reader : readers) {
    EXPECT_EQ(reader->received, kWide + kRest);
    EXPECT_EQ(reader->ends, 1U);
  }
  EXPECT_EQ(late.failures, 1U);
}

class AGoawayForHttp11 : public ASilentSession {
 protected:
  void go_away() {
    exec::assume_on_loop();
    origin_->session().goaway(proxy::http::H2Error::http_1_1_required);
    answer();
    turn(0);
  }
};

TEST_F(AGoawayForHttp11, MovesARequestToItThatItExcludes) {
  establish();
  near_.ask("GET");
  turn(0);  // the origin does not receive it before
  go_away();
  EXPECT_EQ(near_.failures, 1U);
  EXPECT_EQ(near_.unprocessed, proxy::RetryReason::goaway);
  EXPECT_TRUE(near_.asks_h1);
}

TEST_F(AGoawayForHttp11, MovesARequestToItThatWaitsToBeSent) {
  establish();
  rest(seconds(5));
  near_.ask("GET");
  send();
  ASSERT_EQ(heads(), 0U) << "it waits for a PING";
  go_away();
  EXPECT_EQ(near_.failures, 1U);
  EXPECT_EQ(near_.unprocessed, proxy::RetryReason::goaway);
  EXPECT_TRUE(near_.asks_h1);
}

}  // namespace
}  // namespace carpool::test
