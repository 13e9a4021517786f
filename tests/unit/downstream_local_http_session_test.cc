// Unit tests of LocalHttpSession over a pair of sockets: one request after the other, bounds, and ends.
#include "proxy/downstream/local_http_session.h"

#include <optional>
#include <string>
#include <vector>

#include "exec/deferred_deleter.h"
#include "proxy/net/plain_transport.h"
#include "tests/unit/net_support.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kAsk = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";

class ALocalSession : public ::testing::Test, private LocalHttpSession::Handler {
 protected:
  // Only a test of the deadline may reach it: on a busy machine any other one could.
  explicit ALocalSession(Duration timeout = 60s) {
    auto [here, there] = net::tcp_pair();
    far_ = std::move(there);
    exec::assume_on_loop();
    LocalHttpSession::Handler& handler = *this;
    session_.emplace(*loop_, handler, net::make_plain(std::move(here)),
                     LocalHttpSession::Bounds{{1024, 10, 512}, 8, 60s, timeout});
    EXPECT_TRUE(session_->start());
  }
  void say(std::string_view text) {
    ASSERT_EQ(static_cast<ssize_t>(text.size()), ::send(far_.get(), text.data(), text.size(), MSG_NOSIGNAL));
  }
  bool until_asked(std::size_t count) {
    return loop_.until([&] { return asked_.size() >= count; });
  }
  bool until_over() {
    return loop_.until([&] { return session_->over(); });
  }
  void respond(std::string_view text) {
    exec::assume_on_loop();
    WriteBatch out;
    out.add(text);
    session_->done_with_request();
    session_->send(out);
  }
  void advance() {
    exec::assume_on_loop();
    next_ = LocalHttpSession::Next::read;
    session_->advance();
  }
  void end_soon() {
    exec::assume_on_loop();
    session_->end_soon();
  }
  std::string received() {
    char buffer[4096];
    const ssize_t size = ::recv(far_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    return {buffer, static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
  }

  LocalHttpSession::Next next() override { return next_; }
  void on_request() override {
    const BufferedRequest& request = session_->request();
    asked_.push_back(std::string(request.head().target) + (request.too_long() ? "!" : ":" + request.body()));
    if (closes_) session_->close_when_sent();
    respond("answer\n");
  }
  void on_malformed(const Fault&) override { respond("malformed\n"); }
  void on_timeout() override {
    exec::assume_on_loop();
    ++timeouts_;
    session_->end();
  }
  void on_end() override { ++ends_; }

  net::TurnedLoop loop_;
  Fd far_;
  std::optional<LocalHttpSession> session_;
  LocalHttpSession::Next next_ = LocalHttpSession::Next::read;
  std::vector<std::string> asked_;
  bool closes_ = false;
  int timeouts_ = 0, ends_ = 0;
};

TEST_F(ALocalSession, ReadsOneRequestAfterTheOtherEachWithItsBody) {
  say("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\none");
  ASSERT_TRUE(until_asked(1));
  say("POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\ntwo");
  ASSERT_TRUE(until_asked(2));
  EXPECT_EQ((std::vector<std::string>{"/a:one", "/b:two"}), asked_);
  EXPECT_EQ("answer\nanswer\n", received());
  EXPECT_FALSE(session_->over());
}

TEST_F(ALocalSession, ReadsNothingUntilItMayGoOn) {
  next_ = LocalHttpSession::Next::wait;
  say(kAsk);
  loop_.pass(10ms);
  EXPECT_TRUE(asked_.empty());
  advance();
  EXPECT_EQ(std::vector<std::string>{"/a:"}, asked_);
}

TEST_F(ALocalSession, SaysThatABodyIsTooLong) {
  say("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nnine byte");
  ASSERT_TRUE(until_asked(1));
  EXPECT_EQ(std::vector<std::string>{"/a!"}, asked_);
}

TEST_F(ALocalSession, ClosesAfterItAnsweredMalformedInput) {
  say("no request\r\n\r\n");
  ASSERT_TRUE(until_over());
  EXPECT_EQ("malformed\n", received());
  EXPECT_EQ(1, ends_);
}

TEST_F(ALocalSession, ClosesWhenItsResponseIsSentAndAnswersNoFurtherRequest) {
  closes_ = true;
  say(std::string(kAsk).append(kAsk));
  ASSERT_TRUE(until_over());
  EXPECT_EQ("answer\n", received());
  EXPECT_EQ(1U, asked_.size());
}

TEST_F(ALocalSession, EndsOnceWhenItsClientLeaves) {
  far_.reset();
  ASSERT_TRUE(until_over());
  exec::assume_on_loop();
  session_->end();
  EXPECT_EQ(1, ends_);
  EXPECT_EQ(0, timeouts_);
}

class AnImpatientSession : public ALocalSession {
 protected:
  AnImpatientSession() : ALocalSession(50ms) {}
};

TEST_F(AnImpatientSession, LosesPatienceWithAClientThatSendsNoWholeRequest) {
  say("GET /a HTTP/1.1\r\n");
  ASSERT_TRUE(until_over());
  EXPECT_EQ(1, timeouts_);
}

TEST_F(ALocalSession, EndsSoonAtOnceBetweenRequests) {
  end_soon();
  EXPECT_TRUE(session_->over());
}

TEST_F(ALocalSession, AnswersBeforeItsEndARequestThatHasArrivedUnnoticed) {
  say(kAsk);
  ASSERT_TRUE(net::wait_readable(session_->transport().fd()));
  end_soon();
  EXPECT_EQ(std::vector<std::string>{"/a:"}, asked_);
  EXPECT_EQ("answer\n", received());
  EXPECT_TRUE(session_->over());
}

struct EndTag;
struct Ending final : ListHook<EndTag> {
  explicit Ending(int& c) : count(c) {}
  ~Ending() { ++count; }
  int& count;
};
struct Rounds {
  void ended() { ++count; }
  int count = 0;
};

TEST(ADeferredDeleter, DestroysWhatEndedInATurnAtItsEndAndTheRestWithItself) {
  net::TurnedLoop loop;
  int destroyed = 0;
  Rounds rounds;
  exec::assume_on_loop();
  {
    exec::DeferredDeleter<Ending, EndTag> deleter(*loop, exec::Bound::to<&Rounds::ended>(rounds));
    deleter.destroy_later(std::make_unique<Ending>(destroyed));
    deleter.destroy_later(std::make_unique<Ending>(destroyed));
    EXPECT_EQ(0, destroyed);
    loop->turn(false);
    EXPECT_EQ(2, destroyed);
    EXPECT_EQ(1, rounds.count);
    deleter.destroy_later(std::make_unique<Ending>(destroyed));
  }
  EXPECT_EQ(3, destroyed);
  loop->turn(false);
  EXPECT_EQ(1, rounds.count);
}

}  // namespace
}  // namespace carpool::proxy
