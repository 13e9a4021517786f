// Unit tests of what a session sends in a turn, and of one that cannot write, is over, or may serve no further request.
#include "tests/unit/upstream_silent_session.h"

namespace carpool::test {
namespace {

using proxy::http::Framing;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Origin = ObedientOrigin;

// ---- what a turn sends ----

class ABusySession : public SilentSession {};

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

class AGoawayForHttp11 : public SilentSession {
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
