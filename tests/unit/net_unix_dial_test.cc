// Unit tests of dials to Unix sockets: the connection itself, and the faults if there is none.
#include <sys/stat.h>

#include <optional>

#include "proxy/net/dial.h"
#include "proxy/net/dns/resolver.h"
#include "proxy/net/egress_policy.h"
#include "tests/unit/net_support.h"

namespace carpool::proxy::net {
namespace {

struct UnixDialTest : ::testing::Test, DialOwner {
  UnixDialTest() { folder = ::mkdtemp(template_of_folder.data()); }
  ~UnixDialTest() override {
    exec::assume_on_loop();
    dial.reset();
    for (const char* name : {"/app.sock", "/link.sock"}) ::unlink((folder + name).c_str());
    ::rmdir(folder.c_str());
  }
  void on_dialed(Result<Dialed> result) override {
    if (result) {
      dialed.emplace(std::move(*result));
    } else {
      fault.emplace(result.take_fault());
    }
  }
  void begin(const std::string& file, DialPlan plan = {}) {
    exec::assume_on_loop();
    plan.origin = &origin;
    plan.pinned = {address(at(file))};
    dial = std::make_unique<Dial>(*loop, resolver, std::move(plan), *this);
    dial->start();
  }
  void run(const std::string& file, DialPlan plan = {}) {
    begin(file, std::move(plan));
    EXPECT_TRUE(loop.until([&] { return dialed || fault; }));
  }
  std::string at(const std::string& file) const { return "unix:" + folder + "/" + file; }

  std::string template_of_folder = ::testing::TempDir() + "carpool-unix-XXXXXX";
  std::string folder;
  TurnedLoop loop;
  dns::Resolver resolver{*loop, {}};
  pool::Origin origin = *pool::canonical_origin(pool::Scheme::http, "app.test");
  std::unique_ptr<Dial> dial;
  std::optional<Dialed> dialed;
  std::optional<Fault> fault;
};

TEST_F(UnixDialTest, ConnectsAndProvesThatThePeerIsOnThisHost) {
  const Fd listener = listen_on(at("app.sock"));
  run("app.sock");
  ASSERT_TRUE(dialed) << fault->detail;
  EXPECT_EQ(dialed->peer.text(), at("app.sock"));
  EXPECT_TRUE(dialed->proven_peer);
  EXPECT_TRUE(dialed->transport->no_data_pending());
}

TEST_F(UnixDialTest, NamesAFileThatDoesNotExist) {
  run("app.sock");
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::connect_refused);
  EXPECT_NE(fault->detail.find("app.sock: No such file or directory: the socket's file does not exist"),
            std::string::npos)
      << fault->detail;
}

TEST_F(UnixDialTest, NamesASocketWithoutAProcess) {
  listen_on(at("app.sock")).reset();
  run("app.sock");
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::connect_refused);
  EXPECT_NE(fault->detail.find("no process listens on the socket"), std::string::npos) << fault->detail;
}

// connect() fails at once when the accept queue is full, and no event reports space.
TEST_F(UnixDialTest, WaitsForRoomInAFullAcceptQueue) {
  const Fd listener = listen_on(at("app.sock"), 0);
  const Fd filler = connect_to(address(at("app.sock")));
  begin("app.sock");
  loop.pass(20ms);
  EXPECT_FALSE(dialed || fault);
  const Fd taken(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_TRUE(loop.until([&] { return dialed || fault; }));
  EXPECT_TRUE(dialed) << fault->detail;
}

TEST_F(UnixDialTest, SaysThatTheAcceptQueueStayedFull) {
  const Fd listener = listen_on(at("app.sock"), 0);
  const Fd filler = connect_to(address(at("app.sock")));
  DialPlan plan;
  plan.timeout = 30ms;
  run("app.sock", plan);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::connect_timeout);
  EXPECT_EQ(fault->detail, "connect to " + at("app.sock") + ", whose accept queue is full, timed out after 30ms");
}

TEST_F(UnixDialTest, NeverReachesAnOwnListenerWhateverItsFileIsCalled) {
  const Fd listener = listen_on(at("app.sock"));
  ASSERT_EQ(::symlink((folder + "/app.sock").c_str(), (folder + "/link.sock").c_str()), 0);
  config::Egress open;
  const auto rules = EgressPolicy::make(open);
  ASSERT_TRUE(rules);
  (*rules)->set_own_listeners({address(at("app.sock"))});
  for (const char* spelling : {"app.sock", "link.sock", "./app.sock"}) {
    const Status allowed = (*rules)->may_dial(origin, address(at(spelling)));
    ASSERT_FALSE(allowed) << spelling;
    EXPECT_EQ(allowed.fault().kind, FaultKind::loop_detected) << spelling;
  }
  EXPECT_TRUE((*rules)->may_dial(origin, address(at("other.sock"))));
}

TEST_F(UnixDialTest, IsJudgedByTheNameOfItsOrigin) {
  config::Egress closed;
  closed.default_ = config::EgressAction::deny;
  closed.allow = {"0.0.0.0/0", "::/0"};
  const auto networks = EgressPolicy::make(closed);
  ASSERT_TRUE(networks);
  EXPECT_FALSE((*networks)->may_dial(origin, address(at("app.sock"))));
  closed.allow = {"app.test:80"};
  const auto names = EgressPolicy::make(closed);
  ASSERT_TRUE(names);
  EXPECT_TRUE((*names)->may_dial(origin, address(at("app.sock"))));
}

}  // namespace
}  // namespace carpool::proxy::net
