// The TLS handshake of a client when the n-th allocation fails, for every n until none is reached: that client alone
// ends, on the loop or off it, in the listener's own TLS or inside a CONNECT.
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "exec/submitter.h"
#include "proxy/downstream/client_handshake.h"
#include "tests/unit/data_plane.h"
#include "tests/unit/failing_new.h"
#include "tests/unit/net_tls_support.h"

namespace carpool::proxy {
namespace {

using test::EndlessMemory;

class OneTask final : public exec::Submitter {
 public:
  bool submit(exec::TaskPtr task) override {
    if (!rejects) held = std::move(task);
    return !rejects;
  }
  bool rejects = false;
  exec::TaskPtr held;
};

// One handshake with a client that is complete if no allocation fails.
class Shaken final : public HandshakeOwner {
 public:
  explicit Shaken(bool by_tasks, bool in_connect) : by_tasks_(by_tasks) {
    exec::assume_on_loop();
    auto [ours, theirs] = net::tcp_pair();
    net::prepare_socket(ours.get());
    net::prepare_socket(theirs.get());
    fd_ = ours.get();
    client_ = tls::TlsTransport::client(*trusting_, std::move(theirs), "localhost", 443);
    if (!in_connect) {
      handshake_ =
          std::make_unique<ClientHandshake>(plane_.context, *this, plane_.listener, identity_, std::move(ours), "peer");
    } else {
      auto connect = std::make_unique<InterceptedConnect>();
      connect->identity = identity_;
      plane_.stats.open_counters(connect->slot);  // as the interceptor does
      connect->point = std::make_unique<ListenPoint>(
          plane_.listener.point(), Interception{*pool::canonical_origin(pool::Scheme::https, "localhost:443")});
      handshake_ = std::make_unique<ClientHandshake>(plane_.context, *this, plane_.listener, std::move(connect),
                                                     std::move(ours), "peer");
    }
    EXPECT_TRUE(handshake_->start());
  }

  // Returns true if the n-th allocation of the handshake was reached and failed.
  bool run(std::uint64_t n) {
    const std::uint64_t asked = test::memory().asked;
    test::memory().fails_at = asked + n;
    for (int flights = 0; flights < 10 && !ended(); ++flights) exchange_flights();
    test::memory().fails_at = 0;
    return test::memory().asked - asked >= n;
  }
  void reject_tasks() { tasks_.rejects = true; }
  bool ended() const { return result_ != nullptr || over_ != 0; }
  bool established() const { return result_ != nullptr; }
  int over() const { return over_; }

 private:
  void exchange_flights() {
    exec::assume_on_loop();
    {
      const EndlessMemory of_the_test;
      static_cast<void>(client_->handshake());
      net::wait_readable(fd_);
    }
    const auto watcher = plane_.loop.watchers.find(fd_);
    if (watcher != plane_.loop.watchers.end()) watcher->second->on_ready({true, true, false});
    if (tasks_.held) exec::run_task(std::move(tasks_.held), nullptr);
    plane_.turn();
    const EndlessMemory of_the_test;
    if (net::wait_readable(client_->fd(), 100)) client_->on_readiness({true, true, false});
  }
  void destroy_later(ClientConnection&) override { ++over_; }
  exec::Submitter* tasks_for_handshake() override { return by_tasks_ ? &tasks_ : nullptr; }
  HandshakeTurns& handshake_turns() override { return turns_; }
  void established(Listener&, std::unique_ptr<const ListenPoint>, std::unique_ptr<net::Transport> transport,
                   std::string, bool) override {
    result_ = std::move(transport);
  }
  void tunnel(Listener&, InterceptedConnect&, metrics::Intercept, Fd, std::string, bool) override {}
  ConnectInterceptor& interceptor() override { return interceptor_; }

  const bool by_tasks_;
  HandshakeTurns turns_{1};
  test::DataPlane plane_;
  OneTask tasks_;
  std::shared_ptr<tls::ServerContext> identity_{tls::serve()};
  std::unique_ptr<tls::ClientContext> trusting_ = tls::trust(*identity_);
  std::unique_ptr<tls::TlsTransport> client_;
  int fd_ = -1;
  ConnectInterceptor interceptor_{plane_.context, nullptr};
  std::unique_ptr<ClientHandshake> handshake_;
  std::unique_ptr<net::Transport> result_;
  int over_ = 0;
};

class AHandshakeWithoutMemory : public ::testing::TestWithParam<std::pair<bool, bool>> {
 protected:
  void SetUp() override {
    if (!CARPOOL_OWN_NEW) GTEST_SKIP() << "the sanitizer owns operator new";
    static_cast<void>(Shaken(false, true).run(0));  // what is allocated once in the life of a process
  }
};

TEST_P(AHandshakeWithoutMemory, IsRejectedAloneWhenNoThreadIsFreeEither) {
  for (std::uint64_t n = 1;; ++n) {
    Shaken one(true, GetParam().second);
    one.reject_tasks();
    const bool failed = one.run(n);
    EXPECT_EQ(one.over(), 1) << n;
    EXPECT_FALSE(one.established());
    if (!failed) break;
  }
}

TEST_P(AHandshakeWithoutMemory, EndsAlone) {
  const auto [by_tasks, in_connect] = GetParam();
  std::uint64_t n = 1;
  for (;; ++n) {
    Shaken one(by_tasks, in_connect);
    const bool failed = one.run(n);
    EXPECT_EQ(one.over(), 1) << n;
    if (!failed) {
      EXPECT_TRUE(one.established());
      break;
    }
  }
  EXPECT_GT(n, 3U) << "some allocations were reached";
}

INSTANTIATE_TEST_SUITE_P(OnAndOffTheLoop, AHandshakeWithoutMemory,
                         ::testing::Values(std::pair(false, false), std::pair(true, false), std::pair(false, true),
                                           std::pair(true, true)));

TEST(AnInterceptedRequest, AllocatesNothingForARouteThatIsKnown) {
  if (!CARPOOL_OWN_NEW) GTEST_SKIP() << "the sanitizer owns operator new";
  exec::assume_on_loop();
  test::DataPlane plane;
  const ListenPoint inside(plane.listener.point(),
                           Interception{*pool::canonical_origin(pool::Scheme::https, "a-long-name.test:8443")});
  http::Target target;
  target.authority = "a-long-name.test:8443";
  target.path = "/";
  ASSERT_TRUE(plane.router.route(inside, true, target));
  const std::uint64_t asked = test::memory().asked;
  EXPECT_TRUE(plane.router.route(inside, true, target));
  EXPECT_EQ(test::memory().asked, asked);
}

}  // namespace
}  // namespace carpool::proxy
