// Unit tests of an HTTP/2 connection to the admin endpoint as a producer: which thread produces which response, and
// what continues meanwhile.
#include "tests/unit/server_admin_h2_support.h"

#include <algorithm>

#include "proxy/server/admin/handlers/pools.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;

TEST_F(AdminH2, AnswersAProbeWithoutATaskAndAnErrorAsAProblem) {
  const http::StreamRecord& probe = ask("/livez");
  const http::StreamRecord& unknown = ask("/threads?x=%");
  talk();
  EXPECT_EQ(probe.response.status, 200);
  EXPECT_TRUE(probe.closed);
  EXPECT_EQ(unknown.response.status, 400);
  EXPECT_EQ(unknown.response.fields.get("content-type"), "application/problem+json");
  EXPECT_EQ(connection_->strategy().counts().tasks(), 0U);
}

// Steps 7 to 10 of "eat what you kill".
TEST_F(AdminH2, EatsARequestInPlaceWhileAReservedThreadReadsOn) {
  threads_.reserved = 1;
  const http::StreamRecord& slow = ask("/pools");
  std::uint16_t probed = 0;
  bool ponged = false, slow_waits = false;
  program_.meanwhile = [&] {
    ASSERT_EQ(threads_.helpers.size(), 1U) << "the role is handed over before the request is run";
    const http::StreamRecord& probe = ask("/livez");
    client_.session.ping(7);
    tell();
    loop_.turn();
    threads_.run_first(threads_.helpers);
    while (receive()) {
    }
    probed = probe.response.status;
    ponged = client_.pong == 7;
    slow_waits = slow.response.status == 0;
  };
  talk();
  EXPECT_EQ(probed, 200);
  EXPECT_TRUE(ponged);
  EXPECT_TRUE(slow_waits);
  EXPECT_EQ(slow.response.status, 200) << "the thread that ran it sent it";
  EXPECT_EQ(connection_->strategy().counts().epc, 1U);
  EXPECT_TRUE(threads_.queued.empty());
}

TEST_F(AdminH2, QueuesARequestThatBlocksWhenNoThreadIsFreeAndReadsOn) {
  const http::StreamRecord& blocks = ask("/pools/http%3A%2F%2Fa.example/advice");
  talk();
  EXPECT_EQ(threads_.queued.size(), 1U);
  const http::StreamRecord& probe = ask("/livez");
  talk();
  EXPECT_EQ(probe.response.status, 200);
  EXPECT_EQ(blocks.response.status, 0);
  threads_.run_first(threads_.queued);
  talk();
  EXPECT_EQ(blocks.response.status, 404);
  EXPECT_EQ(connection_->strategy().counts().pec, 1U);
}

TEST_F(AdminH2, OfAProcessThatLeavesGetsGoawayAndTheResponseInProgress) {
  exec::assume_on_loop();
  const http::StreamRecord& blocks = ask("/pools/http%3A%2F%2Fa.example/advice");
  talk();
  ASSERT_EQ(threads_.queued.size(), 1U);
  connection_->end_soon();
  talk();
  EXPECT_EQ(client_.goaway, std::pair(blocks.stream->id(), http::H2Error::no_error));
  EXPECT_FALSE(at_end_);
  threads_.run_first(threads_.queued);
  talk();
  EXPECT_EQ(blocks.response.status, 404);
  EXPECT_TRUE(at_end_);
}

TEST_F(AdminH2, OfAProcessThatLeavesAnswersARequestThatHasArrived) {
  exec::assume_on_loop();
  ask("/livez");
  talk();
  const http::StreamRecord& arrived = ask("/livez");
  tell();
  connection_->end_soon();
  talk();
  EXPECT_EQ(arrived.response.status, 200);
  EXPECT_EQ(client_.goaway, std::pair(http::StreamId(3), http::H2Error::no_error));
  EXPECT_TRUE(at_end_);
}

TEST_F(AdminH2, ThatIsNewInAProcessThatLeavesAnswersOneRequest) {
  exec::assume_on_loop();
  connection_->end_soon();
  talk();
  EXPECT_FALSE(at_end_);
  const http::StreamRecord& first = ask("/livez");
  talk();
  EXPECT_EQ(first.response.status, 200);
  EXPECT_EQ(client_.goaway, std::pair(http::StreamId(1), http::H2Error::no_error));
  EXPECT_TRUE(at_end_);
}

TEST_F(AdminH2, OfAProcessThatLeavesEndsWithItsEvents) {
  exec::assume_on_loop();
  const http::StreamRecord& events = ask("/events");
  talk();
  EXPECT_EQ(listeners_, 1U);
  connection_->end_soon();
  talk();
  EXPECT_TRUE(events.closed);
  EXPECT_TRUE(events.ended);
  EXPECT_EQ(events.reason, http::H2Error::no_error);
  EXPECT_EQ(client_.goaway, std::pair(http::StreamId(1), http::H2Error::no_error));
  EXPECT_TRUE(at_end_);
  EXPECT_EQ(listeners_, 0U);
}

TEST_F(AdminH2, ComputesAnEitherRequestItselfWhenNoThreadIsFree) {
  program_.count = 1;
  const http::StreamRecord& pools = ask("/pools");
  talk();
  EXPECT_EQ(pools.response.status, 200);
  EXPECT_TRUE(threads_.queued.empty());
  EXPECT_EQ(connection_->strategy().counts().pic, 1U);
}

TEST_F(AdminH2, ReadsAndAnswersProbesOnTheLoopWhenNoTaskIsAdmitted) {
  no_tasks_ = true;
  exec::TaskLimit& limit = limit_;
  std::deque<exec::TaskPtr> all;
  for (unsigned i = 0; i < 100; ++i) {
    all.push_back(exec::make_task("blocked", [] {}));
    ASSERT_TRUE(limit.admit(*all.back()));
  }
  const http::StreamRecord& probe = ask("/readyz");
  const http::StreamRecord& slow = ask("/pools");
  talk();
  EXPECT_EQ(probe.response.status, 200);
  EXPECT_EQ(slow.response.status, 503);
  EXPECT_EQ(slow.response.fields.get("retry-after"), "1");
  EXPECT_EQ(limit.refused(), 1U);
}

TEST_F(AdminH2, ProducesNoFurtherStepBeforeTheWindowIsOpened) {
  client_.session.widen(*ask("/pools").stream, 65535);
  const http::StreamRecord& slow = records_.back();
  talk();
  const std::uint64_t before = connection_->strategy().counts().tasks();
  EXPECT_EQ(slow.body.size(), 65535U);
  EXPECT_FALSE(slow.ended);
  talk();
  EXPECT_EQ(connection_->strategy().counts().tasks(), before);
  while (!slow.ended) {
    if (slow.stream != nullptr) client_.session.consume(*slow.stream, slow.body.size());
    talk();
    while (!threads_.queued.empty()) threads_.run_first(threads_.queued);
    ASSERT_LT(connection_->strategy().counts().tasks(), 100U);
  }
  EXPECT_EQ(slow.body, admin::whole(admin::pools_response(program_.pools())).body);
  EXPECT_GT(connection_->strategy().counts().tasks(), before + 3);
}

TEST_F(AdminH2, AnswersACommandOnTheLoop) {
  const http::StreamRecord& command = ask("/quit", "POST");
  talk();
  EXPECT_EQ(command.response.status, 202);
  EXPECT_EQ(connection_->strategy().counts().tasks(), 0U);
}

TEST_F(AdminH2, HasAtMostSixteenResponsesInProgressOneOfWhichMayWaitForTheClient) {
  for (int i = 0; i < 20; ++i) ask("/pools/http%3A%2F%2Fa.example/advice");
  talk();
  EXPECT_EQ(threads_.queued.size(), 16U);
  EXPECT_TRUE(connection_->busy());
  threads_.run_first(threads_.queued);
  talk();
  EXPECT_EQ(threads_.queued.size(), 16U);
  while (!threads_.queued.empty()) {
    threads_.run_first(threads_.queued);
    talk();
  }
  for (const http::StreamRecord& one : records_) EXPECT_EQ(one.response.status, 404);
  EXPECT_FALSE(connection_->busy());
}

TEST_F(AdminH2, GivesTheLoopAtMostSixteenCommandsAtATimeAndTheOthersWait) {
  for (int i = 0; i < 20; ++i) ask("/pools/http%3A%2F%2Fa.example/warm-up?size=2", "POST");
  talk();
  pass(5ms);
  while (receive()) {
  }
  const auto answered = [this] {
    return std::count_if(records_.begin(), records_.end(), [](const auto& one) { return one.response.status == 200; });
  };
  EXPECT_EQ(answered(), 16);
  talk();
  pass(5ms);
  talk();
  EXPECT_EQ(answered(), 20);
}

TEST_F(AdminH2, CountsACommandWhoseStreamWasResetUntilItIsExecuted) {
  for (int i = 0; i < 16; ++i) ask("/pools/http%3A%2F%2Fa.example/warm-up?size=2", "POST");
  talk();
  for (http::StreamRecord& one : records_) client_.session.reset(*one.stream, http::H2Error::cancel);
  const http::StreamRecord& next = ask("/quit", "POST");
  talk();
  EXPECT_EQ(next.response.status, 0);
  pass(5ms);
  talk();
  EXPECT_EQ(next.response.status, 202);
}

TEST_F(AdminH2, RefusesAResponseWhenTheConnectionsOfItsListenerHaveTooMany) {
  most_responses_ = 1;
  const http::StreamRecord& first = ask("/pools/http%3A%2F%2Fa.example/advice");
  const http::StreamRecord& second = ask("/pools");
  const http::StreamRecord& command = ask("/quit", "POST");
  const http::StreamRecord& probe = ask("/readyz");
  talk();
  EXPECT_EQ(probe.response.status, 200);
  EXPECT_EQ(second.response.status, 503);
  EXPECT_EQ(second.response.fields.get("retry-after"), "1");
  EXPECT_EQ(command.response.status, 503);
  EXPECT_EQ(control_.quits, 0);
  threads_.run_first(threads_.queued);
  talk();
  EXPECT_EQ(first.response.status, 404);
  const http::StreamRecord& third = ask("/quit", "POST");
  talk();
  EXPECT_EQ(third.response.status, 202);
}

TEST_F(AdminH2, DropsTheResponseOfAStreamThatWasResetMeanwhile) {
  http::StreamRecord& gone = ask("/pools/http%3A%2F%2Fa.example/advice");
  talk();
  client_.session.reset(*gone.stream, http::H2Error::cancel);
  talk();
  threads_.run_first(threads_.queued);
  const http::StreamRecord& probe = ask("/livez");
  talk();
  EXPECT_EQ(gone.response.status, 0);
  EXPECT_EQ(probe.response.status, 200);
  EXPECT_FALSE(connection_->busy());
}

TEST_F(AdminH2, OutlivesItsClientUntilItsTasksHaveReturned) {
  ask("/pools/http%3A%2F%2Fa.example/advice");
  talk();
  far_.reset();
  loop_.turn();
  loop_.turn();
  EXPECT_TRUE(closing_);
  EXPECT_FALSE(unused_);
  threads_.run_first(threads_.queued);
  loop_.turn();
  EXPECT_TRUE(unused_);
}

TEST_F(AdminH2, OutlivesAHelperThatWasCalledAndHasNotCome) {
  exec::assume_on_loop();
  threads_.reserved = 1;
  program_.count = 1;
  ask("/pools");
  talk();
  ASSERT_EQ(threads_.helpers.size(), 1U);
  connection_->end();
  for (int i = 0; i < 4; ++i) loop_.turn();
  EXPECT_TRUE(closing_);
  EXPECT_FALSE(unused_);
  threads_.run_first(threads_.helpers);
  loop_.turn();
  EXPECT_TRUE(unused_);
}

TEST_F(AdminH2, WhoseClientSendsNothingGetsAGoawayAfterThirtySeconds) {
  talk();
  pass(29s);
  EXPECT_FALSE(closing_);
  pass(2s);
  receive();
  EXPECT_EQ(http::error_of(raw_, 0), 0);
  pass(3s);
  loop_.turn();
  EXPECT_TRUE(closing_);
}

TEST_F(AdminH2, ResetsARequestThatDoesNotArriveAndAResponseThatIsNotRead) {
  http::StreamRecord& half = ask("/log-level", "PUT", false);
  http::StreamRecord& unread = ask("/pools");
  talk();
  pass(29s);
  EXPECT_FALSE(half.closed || unread.closed);
  ask("/livez");
  talk();
  pass(2s);
  while (receive()) {
  }
  EXPECT_TRUE(half.closed && unread.closed);
  EXPECT_EQ(half.reason, http::H2Error::cancel);
  EXPECT_FALSE(unread.ended) << "it does not look complete";
  EXPECT_FALSE(closing_) << "the connection goes on";
  const http::StreamRecord& probe = ask("/livez");
  talk();
  EXPECT_EQ(probe.response.status, 200);
}

TEST_F(AdminH2, ResetsTheStreamOfAResponseThatCouldNotBeProduced) {
  program_.out_of_memory = true;
  const http::StreamRecord& failed = ask("/pools");
  talk();
  EXPECT_TRUE(failed.closed);
  EXPECT_EQ(failed.reason, http::H2Error::internal_error);
  EXPECT_EQ(connection_->strategy().counts().failed, 1U);
  EXPECT_FALSE(closing_);
}

TEST_F(AdminH2, RefusesTwoHostsALongBodyAndAForeignHost) {
  tell();
  loop_.turn();
  const auto send = [&](unsigned id, http::List_ fields, bool end) {
    say(http::headers(id, fields, end));
    loop_.turn();
  };
  http::List_ two = http::get("/livez");
  two.emplace_back("host", "other.test");
  send(1, two, true);
  send(3, http::get("/livez"), true);
  receive();
  std::string received;
  for (const http::Frame& frame : http::frames(raw_)) received += frame.type == 0 ? frame.payload : "";
  EXPECT_NE(received.find("Host differs from :authority"), std::string::npos);
  EXPECT_NE(received.find("Host must be an IP address"), std::string::npos);
  send(5, {{":method", "PUT"}, {":scheme", "http"}, {":authority", "localhost"}, {":path", "/log-level"}}, false);
  say(http::data(5, std::string(16000, 'x'), false));
  say(http::data(5, std::string(1000, 'x'), false));
  loop_.turn();
  raw_.clear();
  receive();
  EXPECT_NE(raw_.find("the body is too long"), std::string::npos);
  EXPECT_EQ(http::error_of(raw_, 5), static_cast<int>(http::H2Error::no_error)) << "the rest is not needed";
  say(http::data(5, std::string(1000, 'x'), true));
  send(7, {{":method", "CONNECT"}, {":authority", "localhost:443"}}, true);
  raw_.clear();
  receive();
  const std::vector<http::Frame> record = http::frames(raw_);
  EXPECT_TRUE(std::any_of(record.begin(), record.end(), [](const auto& f) { return f.type == 1 && f.stream == 7; }))
      << "a response, though there is no :path";
  EXPECT_FALSE(closing_);
}

TEST_F(AdminH2, RefusesRequestsWhoseBytesAreTooManyTogether) {
  tell();
  loop_.turn();
  http::List_ fields = http::get("/log-level");
  fields[0].second = "PUT";
  const std::string longest(15000, 'x');
  fields.emplace_back("a", longest);
  for (unsigned id = 1; id < 41; id += 2) {
    say(http::headers(id, fields, false));
    loop_.turn();
  }
  receive();
  EXPECT_NE(raw_.find("too many bytes of unanswered requests"), std::string::npos);
  EXPECT_EQ(http::error_of(raw_, 1), -1);
  EXPECT_EQ(http::error_of(raw_, 39), static_cast<int>(http::H2Error::no_error));
}

TEST_F(AdminH2, ResetsAStreamThatIsLateAndEndsAConnectionWhoseClientReadsNothing) {
  program_.count = 5000;
  tell();
  http::List_ fields = http::get("/pools");
  fields[2].second = "localhost";
  say(http::frame(4, 0, 0, std::string("\0\4", 2) + http::number(1 << 30)) +
      http::frame(8, 0, 0, http::number(1 << 30)) + http::headers(1, fields));
  loop_.turn();
  while (!threads_.queued.empty()) threads_.run_first(threads_.queued);
  pass(29s);
  char buffer[65536];
  for (int i = 0; i < 6; ++i) {  // the client reads some, so that the oldest unsent byte is from now
    EXPECT_GT(::recv(far_.get(), buffer, sizeof buffer, 0), 0);
    loop_.turn();
    while (!threads_.queued.empty()) threads_.run_first(threads_.queued);
    loop_.turn();
  }
  pass(2s);
  EXPECT_FALSE(closing_) << "its stream was late, not the connection";
  pass(20s);
  EXPECT_FALSE(closing_);
  pass(10s);
  loop_.turn();
  EXPECT_TRUE(closing_);
}

TEST_F(AdminH2, EndsAConnectionWithResponsesOfIncompleteRequestsThatAreNotRead) {
  tell();
  say(http::frame(4, 0, 0, std::string("\0\4", 2) + http::number(0)));
  http::List_ fields = http::get("/log-level");
  fields[0].second = "PUT";
  say(http::headers(1, fields, false) + http::data(1, std::string(16000, 'x'), false) +
      http::data(1, std::string(1000, 'x'), false));
  loop_.turn();
  pass(29s);
  EXPECT_FALSE(closing_);
  pass(2s);
  receive();
  EXPECT_EQ(http::error_of(raw_, 0), 0);
}

TEST_F(AdminH2, AnswersAHeadThatExceedsTheLimitAndGoesOn) {
  tell();
  loop_.turn();
  http::List_ fields = http::get("/livez");
  const std::string longest(9000, 'x');
  fields.emplace_back("a", longest);
  fields.emplace_back("b", longest);
  const std::string block = http::block(fields);
  say(http::frame(1, 1, 1, block.substr(0, 16000)) + http::frame(9, 4, 1, block.substr(16000)));
  loop_.turn();
  receive();
  EXPECT_NE(raw_.find("the request head exceeds a limit"), std::string::npos);
  EXPECT_EQ(http::error_of(raw_, 0), -1);
}

TEST_F(AdminH2, AnswersAHeadThatExceedsTheLimitLikewiseIfABodyFollows) {
  tell();
  loop_.turn();
  http::List_ fields = http::get("/livez");
  fields[0].second = "PUT";
  const std::string longest(9000, 'x');
  fields.emplace_back("a", longest);
  fields.emplace_back("b", longest);
  const std::string block = http::block(fields);
  say(http::frame(1, 0, 1, block.substr(0, 16000)) + http::frame(9, 4, 1, block.substr(16000)) +
      http::data(1, "x", true));
  loop_.turn();
  receive();
  EXPECT_NE(raw_.find("the request head exceeds a limit"), std::string::npos);
  EXPECT_EQ(http::error_of(raw_, 0), -1);
}

TEST_F(AdminH2, EndsAFloodOfResetsAndSaysWhy) {
  tell();
  loop_.turn();
  for (unsigned id = 1; id < 1000 && !closing_; id += 2) {
    const std::string bytes = http::headers(id, http::get("/pools")) + http::frame(3, 0, id, http::number(8));
    if (::send(far_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) break;
    loop_.turn();
  }
  while (receive()) {
  }
  EXPECT_EQ(http::error_of(raw_, 0), static_cast<int>(http::H2Error::enhance_your_calm));
  EXPECT_EQ(connection_->abuse(), http::H2Abuse::resets);
}

TEST_F(AdminH2, TellsEventsToListenersAndForgetsThem) {
  exec::assume_on_loop();
  http::StreamRecord& listener = ask("/events");
  http::StreamRecord& second = ask("/events");
  talk();
  EXPECT_EQ(listener.body, "whole");
  EXPECT_TRUE(connection_->busy());
  EXPECT_EQ(second.response.status, 503);
  connection_->send_event({whole_, change_});
  talk();
  EXPECT_EQ(listener.body, "wholechange");
  connection_->send_event({whole_, nullptr});  // for another listener
  talk();
  EXPECT_EQ(listener.body, "wholechange");
  client_.session.reset(*listener.stream, http::H2Error::cancel);
  talk();
  loop_.turn();
  EXPECT_EQ(listeners_, 0U);
  EXPECT_FALSE(connection_->busy());
}

}  // namespace
}  // namespace carpool::proxy
