// Unit tests of the demo's origin over real sockets. Tests that hold for plain text and TLS run for both.
#include <sys/stat.h>

#include <set>
#include <vector>

#include "tests/unit/commands_demo_support.h"

namespace carpool::proxy::demo_tests {
namespace {

class OriginOver : public ::testing::TestWithParam<bool> {
 protected:
  Caller call() { return served_.caller(GetParam()); }
  Served served_;
};
INSTANTIATE_TEST_SUITE_P(Demo, OriginOver, ::testing::Bool(),
                         [](const auto& which) { return which.param ? "Tls" : "PlainText"; });

std::string filled(std::size_t size) {
  std::string out;
  while (out.size() < size) out += demo_fill();
  out.resize(size);
  return out;
}

TEST_P(OriginOver, TellsWhichConnectionAndWhichRequestOnIt) {
  Caller first = call();
  Caller second = call();
  EXPECT_EQ(first.get("/")->number("Demo-Request"), 1U);
  const auto again = first.get("/");
  EXPECT_EQ(again->head.status, 200);
  EXPECT_EQ(again->number("Demo-Request"), 2U);
  EXPECT_NE(again->body.find("it was reused"), std::string::npos);
  EXPECT_NE(again->body.find(GetParam() ? "HTTP/1.1 over TLSv1.3\n" : "HTTP/1.1\n"), std::string::npos);
  const auto other = second.get("/");
  EXPECT_EQ(other->number("Demo-Request"), 1U);
  EXPECT_NE(other->number("Demo-Connection"), again->number("Demo-Connection"));
}

TEST_P(OriginOver, SendsAsManyBytesAsAreAskedFor) {
  Caller caller = call();
  for (const std::size_t size : {0U, 1U, 65535U, 65536U, 65537U, 5'000'000U}) {
    const auto response = caller.get("/bytes/" + std::to_string(size));
    EXPECT_EQ(response->number("Content-Length"), size);
    EXPECT_TRUE(response->body == filled(size)) << size;
  }
}

TEST_P(OriginOver, AnswersNotBeforeTheDelay) {
  const Instant before = Clock::now();  // the origin's turn that reads the request begins later
  Caller caller = call();
  EXPECT_EQ(caller.get("/delay/80")->body, "waited 80 ms\n");
  EXPECT_GE(Clock::now() - before, 80ms);
}

TEST_P(OriginOver, EchoesABodyOfKnownLength) {
  Caller caller = call();
  caller.say("POST /echo HTTP/1.1\r\nHost: demo\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_EQ(caller.receive("POST")->body, "hello");
  EXPECT_EQ(caller.get("/echo")->body, "");
}

TEST_P(OriginOver, EchoesChunksAndTrailers) {
  Caller caller = call();
  caller.say("POST /echo HTTP/1.1\r\nHost: demo\r\nTransfer-Encoding: chunked\r\n\r\n");
  caller.say("3\r\nabc\r\n4\r\ndefg\r\n0\r\nX-Sum: 7\r\n\r\n");
  const auto response = caller.receive("POST");
  EXPECT_EQ(response->field("Transfer-Encoding"), "chunked");
  EXPECT_EQ(response->body, "abcdefg");
  EXPECT_EQ(response->trailers, "X-Sum=7;");
}

TEST_P(OriginOver, EchoesWhileTheBodyComes) {
  Caller caller = call();
  caller.say("POST /echo HTTP/1.1\r\nHost: demo\r\nContent-Length: 8000000\r\n\r\n");
  const std::string body = filled(8'000'000);
  caller.say(body);
  EXPECT_TRUE(caller.receive("POST")->body == body);
}

TEST_P(OriginOver, AsksForABodyThatWaitsToBeAskedFor) {
  Caller caller = call();
  caller.say("POST /delay/1 HTTP/1.1\r\nHost: demo\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(caller.receive("POST")->head.status, 100);
  caller.say("abc");
  EXPECT_EQ(caller.receive("POST")->head.status, 200);
  EXPECT_EQ(caller.get("/")->number("Demo-Request"), 2U);
}

TEST_P(OriginOver, ThrowsABodyAwayThatNobodyAskedFor) {
  Caller caller = call();
  caller.say("POST /nowhere HTTP/1.1\r\nHost: demo\r\nContent-Length: 300000\r\n\r\n" + std::string(300'000, 'x'));
  EXPECT_EQ(caller.receive("POST")->head.status, 404);
  EXPECT_EQ(caller.get("/")->head.status, 200);
}

TEST_P(OriginOver, AnswersHeadWithoutABody) {
  Caller caller = call();
  caller.say("HEAD /bytes/1000000 HTTP/1.1\r\nHost: demo\r\n\r\n");
  const auto response = caller.receive("HEAD");
  EXPECT_EQ(response->number("Content-Length"), 1'000'000U);
  EXPECT_EQ(response->body, "");
  EXPECT_EQ(caller.get("/")->head.status, 200);
}

TEST_P(OriginOver, EndsTheConnectionBehindClose) {
  Caller caller = call();
  const auto response = caller.get("/close");
  EXPECT_EQ(response->head.status, 200);
  EXPECT_EQ(response->field("Connection"), "close");
  EXPECT_TRUE(caller.ended());
}

TEST_P(OriginOver, AnswersPipelinedRequestsInOrder) {
  Caller caller = call();
  constexpr int kRequests = 300;
  for (int i = 0; i < kRequests; ++i) {
    caller.ask(i % 100 == 50 ? "/delay/3" : i % 3 == 0 ? "/bytes/" + std::to_string(i * 10) : "/");
  }
  for (std::uint64_t i = 0; i < kRequests; ++i) {
    const auto response = caller.receive();
    ASSERT_EQ(response->number("Demo-Request"), i + 1);
    ASSERT_EQ(response->head.status, 200);
    if (i % 100 != 50 && i % 3 == 0) {
      ASSERT_EQ(response->body.size(), i * 10);
    }
  }
}

TEST_P(OriginOver, ServesManyConnectionsAtOnce) {
  std::vector<Caller> callers;
  for (int i = 0; i < 32; ++i) callers.push_back(call());
  const Instant before = Clock::now();
  for (Caller& caller : callers) {
    caller.ask("/delay/500");
    caller.flush();
  }
  std::set<std::uint64_t> connections;
  for (Caller& caller : callers) {
    const auto response = caller.receive();
    EXPECT_EQ(response->head.status, 200);
    connections.insert(response->number("Demo-Connection"));
  }
  EXPECT_EQ(connections.size(), 32U);
  EXPECT_LT(Clock::now() - before, 10s) << "one after the other it would be 16";
}

TEST_P(OriginOver, AnswersAClientThatHasClosedItsSide) {
  Caller caller = call();
  caller.ask("/delay/20");
  caller.ask("/bytes/500000");
  caller.flush();
  caller.end();
  EXPECT_EQ(caller.receive()->body, "waited 20 ms\n");
  EXPECT_EQ(caller.receive()->body.size(), 500'000U);
  EXPECT_TRUE(caller.ended());
}

TEST_P(OriginOver, RefusesWhatIsNoRequestAndEnds) {
  Caller caller = call();
  EXPECT_EQ(caller.get("/")->head.status, 200);
  caller.say("GET / HTTP/1.1\r\nBad Name: x\r\n\r\n");
  EXPECT_EQ(caller.receive()->head.status, 400);
  EXPECT_TRUE(caller.ended());
}

TEST_P(OriginOver, EndsAnEchoWhoseBodyIsBrokenWithoutItsLastChunk) {
  Caller caller = call();
  caller.say("POST /echo HTTP/1.1\r\nHost: demo\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n");
  const auto response = caller.receive("POST");
  EXPECT_EQ(response->head.status, 0) << "it must not look complete";
  EXPECT_EQ(response->body, "abc");
  EXPECT_TRUE(caller.ended());
}

TEST_P(OriginOver, EndsConnectionsThatAreIdle) {
  DemoOrigin::Settings settings;
  settings.idle_timeout = 1s;
  Served served(settings);
  const Instant before = Clock::now();  // the origin's turn that reads the request begins later
  Caller caller = served.caller(GetParam());
  Caller silent = served.caller(GetParam());
  EXPECT_EQ(caller.get("/delay/1200")->head.status, 200) << "waiting for an answer is no rest";
  EXPECT_TRUE(caller.ended());
  EXPECT_GE(Clock::now() - before, 2200ms);
  EXPECT_TRUE(silent.ended());
}

TEST_P(OriginOver, StopsAtOnceWhateverIsUnderWay) {
  Caller waiting = call(), reading = call(), sending = call(), idle = call();
  waiting.ask("/delay/60000");
  waiting.flush();
  reading.ask("/bytes/1099511627776");
  reading.flush();
  sending.say("POST /echo HTTP/1.1\r\nHost: demo\r\nContent-Length: 100\r\n\r\nabc");
  sending.flush();
  EXPECT_EQ(idle.get("/")->head.status, 200);
  const Instant before = Clock::now();
  served_.stop();
  EXPECT_LT(Clock::now() - before, 2s);
  EXPECT_TRUE(idle.ended());
}

TEST(DemoOrigin, ProvesToBeWhoItsNamesSay) {
  Served served;
  for (const char* name : {"demo-tls", "demo", "localhost", "127.0.0.1"}) {
    EXPECT_EQ(served.secure(name).get("/")->head.status, 200) << name;
  }
  Caller stranger(served.origin().secure(), served.trust(), "elsewhere");
  const auto done = stranger.step_handshake();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.fault().kind, FaultKind::tls_certificate);
}

TEST(DemoOrigin, IsTrustedByNobodyWhoWasNotTold) {
  Served served;
  auto context = tls::ClientContext::make({});
  ASSERT_TRUE(context);
  Caller caller(served.origin().secure(), **context, "demo-tls");
  EXPECT_FALSE(caller.step_handshake());
}

TEST(DemoOrigin, SurvivesClientsThatDoNotSpeakTls) {
  Served served;
  Caller confused(served.origin().secure());
  confused.ask("/");
  confused.flush();
  EXPECT_EQ(served.secure().get("/")->head.status, 200);
}

TEST(DemoOrigin, LeavesNoFileAndNoListenerBehind) {
  Served served;
  const std::string file = served.origin().ca_file();
  const net::Address address = served.origin().plain();
  struct stat found {};
  ASSERT_EQ(::stat(file.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 077, 0U);
  served.stop();
  EXPECT_NE(::stat(file.c_str(), &found), 0);
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_NE(::connect(fd.get(), address.get(), address.length()), 0);
}

TEST(DemoOrigin, TurnsAwayWhatItHasNoPlaceFor) {
  DemoOrigin::Settings settings;
  settings.max_connections = 2;
  Served served(settings);
  Caller first = served.plain(), second = served.plain();
  EXPECT_EQ(first.get("/")->head.status, 200);
  EXPECT_EQ(second.get("/")->head.status, 200);
  EXPECT_TRUE(served.plain().ended());
  EXPECT_EQ(first.get("/close")->head.status, 200);
  EXPECT_TRUE(first.ended());
  EXPECT_EQ(second.get("/")->head.status, 200);
}

}  // namespace
}  // namespace carpool::proxy::demo_tests
