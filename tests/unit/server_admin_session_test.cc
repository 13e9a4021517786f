// Unit tests of a client of the admin endpoint with a long response: when each part is produced, and what remains of it
// when the client disconnects.
#include "metrics/registry.h"
#include "proxy/server/admin/admin_session.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <deque>
#include <string>

#include "base/fd.h"
#include "proxy/net/plain_transport.h"
#include "proxy/server/admin/gzip.h"
#include "proxy/server/admin/handlers/pools.h"
#include "tests/unit/server_admin_loop.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;

// One client, and the tasks of its session, which the test runs.
class AdminClient : public testing::Test, public AdminConnection::Owner {
 protected:
  using Pair = std::array<int, 2>;
  static Pair unix_pair() {
    Pair ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    return ends;
  }
  static Pair tcp_pair() {
    const Fd door(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    Pair ends{-1, ::socket(AF_INET, SOCK_STREAM, 0)};
    const int small = 4096;
    EXPECT_EQ(::bind(door.get(), name, length) + ::listen(door.get(), 1) + ::getsockname(door.get(), name, &length), 0);
    ::setsockopt(ends[1], SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    EXPECT_EQ(::connect(ends[1], name, length), 0);
    ends[0] = ::accept(door.get(), nullptr, nullptr);
    for (const int fd : ends) ::fcntl(fd, F_SETFL, O_NONBLOCK);
    return ends;
  }

  explicit AdminClient(const Pair& ends = unix_pair()) {
    exec::assume_on_loop();
    const int small = 4096;
    ::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    far_.reset(ends[1]);
    session_ = std::make_unique<AdminSession>(loop_, *this, AdminConnection::Backend{rules_, program_, control_},
                                              net::make_plain(Fd(ends[0])));
    EXPECT_TRUE(session_->start(loop_.now() + 30s));
  }
  ~AdminClient() override {
    tasks_.clear();
    loop_.turn();
  }

  void ended(AdminConnection&) override { ++ended_; }
  bool may_start_work() override { return room_; }
  void mark_working(AdminConnection&) override { works_ = true; }
  void mark_waiting(AdminConnection&) override { works_ = false; }
  bool may_subscribe() override { return false; }
  bool leaving() const override { return leaving_; }
  void subscribed() override {}
  void unsubscribed() override {}
  bool submit(exec::TaskPtr task) override {
    ++asked_;
    if (refuse_ > 0) {
      --refuse_;
      return false;  // it is closed with its pointer
    }
    tasks_.push_back(std::move(task));
    return true;
  }
  void in_background(exec::TaskPtr task) override { static_cast<void>(submit(std::move(task))); }

  void say(std::string_view text) {
    ASSERT_EQ(::send(far_.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    loop_.turn();
  }
  // Runs the next task. Returns false if it threw.
  bool run_task() {
    exec::TaskPtr task = std::move(tasks_.front());
    tasks_.pop_front();
    const bool well = exec::run_task(std::move(task), nullptr);
    loop_.turn();
    return well;
  }
  bool read_some() {
    char buffer[65536];
    const ssize_t n = ::recv(far_.get(), buffer, sizeof buffer, 0);
    at_end_ = at_end_ || n == 0;
    if (n > 0) received_.append(buffer, static_cast<std::size_t>(n));
    return n > 0;
  }
  // Reads everything that arrives and runs every task, until nothing more happens.
  void serve() {
    for (;;) {
      if (!tasks_.empty()) {
        EXPECT_TRUE(run_task());
      } else if (!read_some()) {
        return;
      }
      loop_.turn();
    }
  }
  bool complete() const { return received_.ends_with("\r\n0\r\n\r\n"); }
  std::string body_of_chunks() const {
    std::string body;
    for (std::size_t at = received_.find("\r\n\r\n") + 4; at < received_.size();) {
      const std::size_t line = received_.find("\r\n", at);
      const std::size_t size = std::stoul(received_.substr(at, line - at), nullptr, 16);
      body.append(received_, line + 2, size);
      at = line + 2 + size + 2;
    }
    return body;
  }
  std::string expected() const { return admin::whole(admin::pools_response(program_.pools())).body; }

  HandLoop loop_;
  Fd far_;
  admin::SharedRules rules_;
  Program program_;
  admin::FakeControl control_;
  std::deque<exec::TaskPtr> tasks_;
  std::unique_ptr<AdminSession> session_;
  std::string received_;
  bool at_end_ = false;
  bool room_ = true, works_ = false, leaving_ = false;
  int ended_ = 0, asked_ = 0, refuse_ = 0;
};

constexpr std::string_view kAsk = "GET /pools HTTP/1.1\r\nHost: localhost\r\n\r\n";
constexpr std::string_view kAskPacked = "GET /pools HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n";

TEST_F(AdminClient, GetsAPendingResponseThatIsKnownBeforeItsNextPoll) {
  say("POST /pools/http%3A%2F%2Fa.example/warm-up?size=2 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
  EXPECT_FALSE(read_some());
  exec::assume_on_loop();
  session_->poll_awaited();
  EXPECT_TRUE(read_some());
  EXPECT_TRUE(received_.starts_with("HTTP/1.1 200 ")) << received_;
}

TEST_F(AdminClient, GetsALongResponseInStepsAndNoneIsMadeBeforeItHasTakenTheLast) {
  say(kAsk);
  EXPECT_TRUE(run_task());
  EXPECT_TRUE(tasks_.empty()) << "one step waits for it, no other is made";
  EXPECT_EQ(asked_, 1);
  serve();
  ASSERT_TRUE(complete());
  EXPECT_NE(received_.find("\r\nTransfer-Encoding: chunked\r\n"), std::string::npos);
  EXPECT_EQ(received_.find("Content-Length"), std::string::npos);
  EXPECT_GE(asked_, 5);
  EXPECT_EQ(body_of_chunks(), expected());
  EXPECT_EQ(ended_, 0);
}

TEST_F(AdminClient, AsksAgainOnTheSameConnectionAfterALongResponse) {
  say(kAsk);
  serve();
  ASSERT_TRUE(complete());
  received_.clear();
  program_.count = 1;
  say(kAsk);
  serve();
  EXPECT_TRUE(received_.ends_with("\r\n\r\n" + expected()));
  EXPECT_NE(received_.find("\r\nContent-Length: " + std::to_string(expected().size()) + "\r\n"), std::string::npos)
      << received_;
  EXPECT_EQ(received_.find("chunked"), std::string::npos);
}

TEST_F(AdminClient, OfAProcessThatLeavesGetsTheResponseInProgressAsTheLastOne) {
  exec::assume_on_loop();
  say(kAsk);
  leaving_ = true;
  session_->end_soon();
  EXPECT_EQ(ended_, 0);
  serve();
  EXPECT_TRUE(complete());
  EXPECT_NE(received_.find("\r\nConnection: close\r\n"), std::string::npos);
  EXPECT_EQ(ended_, 1);
}

TEST_F(AdminClient, OfAProcessThatLeavesEndsIfNoneOfItsRequestsHasArrived) {
  exec::assume_on_loop();
  leaving_ = true;
  session_->end_soon();
  EXPECT_EQ(ended_, 1);
}

TEST_F(AdminClient, OfAProcessThatLeavesIsAnsweredIfItsRequestHasArrivedUnseen) {
  exec::assume_on_loop();
  constexpr std::string_view kProbe = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
  ASSERT_EQ(::send(far_.get(), kProbe.data(), kProbe.size(), 0), static_cast<ssize_t>(kProbe.size()));
  leaving_ = true;
  session_->end_soon();
  serve();
  EXPECT_TRUE(received_.starts_with("HTTP/1.1 200 ")) << received_;
  EXPECT_NE(received_.find("\r\nConnection: close\r\n"), std::string::npos);
  EXPECT_EQ(ended_, 1);
}

TEST_F(AdminClient, OfHttp10ReadsALongResponseUntilItsEnd) {
  say("GET /pools HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n");
  serve();
  EXPECT_EQ(ended_, 1);
  session_.reset();
  read_some();
  EXPECT_TRUE(at_end_);
  EXPECT_NE(received_.find("\r\nConnection: close\r\n"), std::string::npos);
  EXPECT_EQ(received_.find("chunked"), std::string::npos);
  EXPECT_EQ(received_.substr(received_.find("\r\n\r\n") + 4), expected());
}

// Returns a head without its Date, which may be a second later in another one.
std::string without_date(std::string head) {
  const std::size_t begin = head.find("\r\nDate: ");
  EXPECT_NE(begin, std::string::npos) << head;
  return begin == std::string::npos ? head : head.erase(begin, head.find("\r\n", begin + 2) - begin);
}

TEST_F(AdminClient, HeadReturnsTheHeadOfGetWithoutABody) {
  say("HEAD /pools HTTP/1.1\r\nHost: localhost\r\n\r\n");
  serve();
  const std::string head = std::exchange(received_, {});
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
  EXPECT_EQ(asked_, 1) << "no other step is made";
  say(kAsk);
  serve();
  ASSERT_TRUE(complete());
  EXPECT_EQ(without_date(received_.substr(0, received_.find("\r\n\r\n") + 4)), without_date(head));
}

TEST_F(AdminClient, WhoLeavesBetweenTwoStepsLeavesNothing) {
  program_.count = 5000;
  say(kAskPacked);
  while (!tasks_.empty()) EXPECT_TRUE(run_task());
  EXPECT_EQ(ended_, 0) << "a step waits to be taken";
  EXPECT_EQ(admin::gzip_contexts_in_use(), 1U);
  far_.reset();
  loop_.turn();
  EXPECT_EQ(ended_, 1);
  session_.reset();
  EXPECT_EQ(admin::gzip_contexts_in_use(), 0U);
}

TEST_F(AdminClient, WhoLeavesWhileAStepIsMadeIsOutlivedByItsSession) {
  program_.count = 5000;
  say(kAskPacked);
  EXPECT_TRUE(run_task());
  while (tasks_.empty() && read_some()) loop_.turn();
  ASSERT_FALSE(tasks_.empty());
  far_.reset();
  loop_.pass(60s);
  EXPECT_EQ(ended_, 0) << "the task has the answer";
  EXPECT_TRUE(run_task());
  EXPECT_EQ(ended_, 1);
  EXPECT_TRUE(tasks_.empty());
  session_.reset();
  EXPECT_EQ(admin::gzip_contexts_in_use(), 0U);
}

TEST_F(AdminClient, WhoReadsTooSlowlyIsCutOffAfterThirtySecondsForTheWholeResponse) {
  say(kAsk);
  EXPECT_TRUE(run_task());
  for (int i = 0; i < 29; ++i) {
    loop_.pass(1s);
    read_some();
    loop_.turn();
    if (!tasks_.empty()) run_task();
    ASSERT_EQ(ended_, 0);
  }
  loop_.pass(2s);
  EXPECT_EQ(ended_, 1);
  session_.reset();
  while (read_some()) {
  }
  EXPECT_TRUE(at_end_);
  EXPECT_FALSE(complete()) << "it does not look complete";
}

// A response without chunks ends with its connection: a truncated one must not look complete.
class AdminTcpClient : public AdminClient {
 protected:
  AdminTcpClient() : AdminClient(tcp_pair()) {}
};
TEST_F(AdminTcpClient, OfHttp10SeesAResetWhenItsResponseIsCutOff) {
  say("GET /pools HTTP/1.0\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(run_task());
  loop_.pass(31s);
  EXPECT_EQ(ended_, 1);
  session_.reset();
  while (read_some()) {
  }
  EXPECT_FALSE(at_end_);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_F(AdminClient, GetsTheWholeResponseThoughStepsOfItWereRefused) {
  say(kAsk);
  EXPECT_TRUE(run_task());
  refuse_ = 2;
  serve();
  EXPECT_EQ(refuse_, 1);
  EXPECT_FALSE(complete());
  loop_.pass(60ms);
  loop_.turn();
  EXPECT_EQ(refuse_, 0);
  loop_.pass(60ms);
  serve();
  ASSERT_TRUE(complete());
  EXPECT_EQ(body_of_chunks(), expected());
}

TEST_F(AdminClient, IsCutOffWhenStepsAreRefusedForTooLong) {
  say(kAsk);
  EXPECT_TRUE(run_task());
  refuse_ = 1'000'000;
  serve();
  for (int i = 0; i < 350 && ended_ == 0; ++i) loop_.pass(100ms);
  EXPECT_EQ(ended_, 1);
  EXPECT_FALSE(complete());
}

TEST_F(AdminClient, WaitsWhileItTakesItsResponseAndIsWorkedForWhileAStepIsMade) {
  EXPECT_FALSE(works_);
  say(kAsk);
  EXPECT_TRUE(works_);
  EXPECT_TRUE(run_task());
  EXPECT_FALSE(works_) << "the first step waits to be taken";
  serve();
  EXPECT_TRUE(complete());
  EXPECT_FALSE(works_);
}

TEST_F(AdminClient, IsToldWhenTooManyResponsesAreBeingMadeButAProbeIsAnswered) {
  room_ = false;
  say("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
  serve();
  EXPECT_TRUE(received_.starts_with("HTTP/1.1 200 ")) << received_;
  received_.clear();
  say(kAsk);
  serve();
  EXPECT_TRUE(received_.starts_with("HTTP/1.1 503 ")) << received_;
  EXPECT_NE(received_.find("Retry-After: 1"), std::string::npos);
  EXPECT_EQ(asked_, 0);
}

TEST_F(AdminClient, IsToldWhenNothingOfItsResponseCouldBeMade) {
  refuse_ = 1;
  say(kAsk);
  serve();
  EXPECT_TRUE(received_.starts_with("HTTP/1.1 503 ")) << received_;
  EXPECT_NE(received_.find("too many blocking tasks"), std::string::npos);
}

TEST_F(AdminClient, IsLetGoWhenMakingItsResponseFails) {
  program_.out_of_memory = true;
  say(kAsk);
  EXPECT_FALSE(run_task()) << "whoever runs it learns why";
  EXPECT_EQ(ended_, 1);
}

}  // namespace
}  // namespace carpool::proxy
