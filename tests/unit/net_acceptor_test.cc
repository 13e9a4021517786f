// Unit tests of Acceptor over listening sockets on loopback and in the file system.
#include "proxy/net/acceptor.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <vector>

#include "tests/unit/net_support.h"

namespace carpool::proxy::net {
namespace {

struct Owner final : Acceptor::Owner {
  Acceptor::Gate gate() override {
    ++asked;
    return state;
  }
  void on_client(Acceptor& acceptor, Fd client, const Address& peer) override {
    clients.push_back(std::move(client));
    peers.push_back(peer);
    if (on_each) on_each(acceptor);
  }
  void on_accept_failed(int error) override { errors.push_back(error); }
  Acceptor::Gate state = Acceptor::Gate::open;
  std::vector<Fd> clients;
  std::vector<Address> peers;
  std::vector<int> errors;
  int asked = 0;
  std::function<void(Acceptor&)> on_each;
};

class AnAcceptor : public ::testing::Test {
 protected:
  explicit AnAcceptor(int most_per_turn = 8) : acceptor_(*loop_, owner_, most_per_turn) {}
  void start(const std::string& address = "127.0.0.1:0") {
    exec::assume_on_loop();
    Result<Bound> bound = bind_and_listen(address, 64);
    ASSERT_TRUE(bound) << bound.fault().detail;
    ASSERT_TRUE(acceptor_.start(std::move(*bound)));
  }
  void resume() {
    exec::assume_on_loop();
    acceptor_.resume();
  }
  void stop() {
    exec::assume_on_loop();
    acceptor_.stop();
  }
  void close() {
    exec::assume_on_loop();
    acceptor_.close();
  }
  Fd copy() {
    exec::assume_on_loop();
    return acceptor_.copy();
  }
  // Closes the socket. Returns true if its file remained.
  bool leaves_file(const std::string& path) {
    close();
    const bool remained = std::filesystem::exists(path);
    std::filesystem::remove(path);
    return remained;
  }
  void come(int count) {
    for (int i = 0; i < count; ++i) callers_.push_back(connect_to(acceptor_.address()));
  }
  bool until_clients(std::size_t count) {
    return loop_.until([&] { return owner_.clients.size() >= count; });
  }
  void turn() { loop_->turn(false); }

  TurnedLoop loop_;
  Owner owner_;
  Acceptor acceptor_;
  std::vector<Fd> callers_;
};

TEST_F(AnAcceptor, AcceptsThoseWhoComeAndThoseWhoWaited) {
  start();
  come(2);
  ASSERT_TRUE(until_clients(2));
  come(1);
  ASSERT_TRUE(until_clients(3));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(owner_.peers[i], Address::local_of(callers_[i].get()));
}

TEST_F(AnAcceptor, AcceptsAClientWhoComesAloneWithoutTryingAgain) {
  start();
  for (int comes = 1; comes <= 3; ++comes) {
    come(1);
    ASSERT_TRUE(until_clients(static_cast<std::size_t>(comes)));
    EXPECT_EQ(comes, owner_.asked) << "it tried to accept another one";
  }
}

TEST_F(AnAcceptor, HandsOverSocketsThatDoNotBlockDoNotDelayAndEndOnExec) {
  start();
  come(1);
  ASSERT_TRUE(until_clients(1));
  const int fd = owner_.clients.front().get();
  EXPECT_NE(0, ::fcntl(fd, F_GETFL) & O_NONBLOCK);
  EXPECT_NE(0, ::fcntl(fd, F_GETFD) & FD_CLOEXEC);
  int on = 0;
  socklen_t length = sizeof on;
  EXPECT_EQ(0, ::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &length));
  EXPECT_NE(0, on);
}

class AnAcceptorOfTwo : public AnAcceptor {
 protected:
  AnAcceptorOfTwo() : AnAcceptor(2) {}
};

TEST_F(AnAcceptorOfTwo, AcceptsAFewPerTurnUntilAllAreIn) {
  start();
  come(9);
  turn();  // two for the event, two for the work that it deferred
  EXPECT_GE(4U, owner_.clients.size());
  EXPECT_TRUE(until_clients(9));
}

TEST_F(AnAcceptor, WaitsBehindAClosedGateUntilItResumes) {
  start();
  owner_.state = Acceptor::Gate::closed;
  come(2);
  ASSERT_TRUE(loop_.until([&] { return owner_.asked > 0; }));
  owner_.state = Acceptor::Gate::open;
  turn();
  EXPECT_TRUE(owner_.clients.empty());
  resume();
  EXPECT_EQ(2U, owner_.clients.size());
}

TEST_F(AnAcceptor, AsksAgainAfterAPauseWhichNobodyShortens) {
  start();
  owner_.state = Acceptor::Gate::pause;
  come(1);
  ASSERT_TRUE(loop_.until([&] { return owner_.asked > 0; }));
  const Instant begun = loop_->now();  // of the pause
  owner_.state = Acceptor::Gate::open;
  come(1);
  turn();
  resume();
  if (Clock::now() < begun + Acceptor::kPause) {  // else it may have been over
    EXPECT_EQ(1, owner_.asked);
  }
  EXPECT_TRUE(until_clients(2)) << "no event announces them again";
}

// The soft limit is the number of the next descriptor, so every open fails.
class NoDescriptorLeft {
 public:
  NoDescriptorLeft() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const Fd next(::fcntl(STDERR_FILENO, F_DUPFD, 0));
    const rlimit now{static_cast<rlim_t>(next.get()), before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &now);
  }
  ~NoDescriptorLeft() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptorLeft(const NoDescriptorLeft&) = delete;
  NoDescriptorLeft& operator=(const NoDescriptorLeft&) = delete;

 private:
  rlimit before_{};
};

TEST_F(AnAcceptor, LetsClientsWaitWhileThereIsNoDescriptorAndAcceptsThemAfterwards) {
  start();
  come(2);
  {
    const NoDescriptorLeft none;
    ASSERT_TRUE(loop_.until([&] { return !owner_.errors.empty(); }));
  }
  EXPECT_EQ(std::vector<int>{EMFILE}, owner_.errors);
  EXPECT_TRUE(owner_.clients.empty());
  EXPECT_TRUE(until_clients(2)) << "no event announces them again";
}

TEST_F(AnAcceptor, TriesOncePerPauseWhileThereIsNoDescriptor) {
  start();
  come(1);
  const NoDescriptorLeft none;
  ASSERT_TRUE(loop_.until([&] { return !owner_.errors.empty(); }));
  const Instant begun = loop_->now();  // of the turn with the first error: its pause begins there
  ASSERT_TRUE(loop_.until([&] { return owner_.errors.size() >= 3; }));
  EXPECT_GE(loop_->now() - begun, 2 * Acceptor::kPause);
}

TEST_F(AnAcceptor, AcceptsNobodyOnceItsOwnerStoppedIt) {
  start();
  owner_.on_each = [](Acceptor& acceptor) {
    exec::assume_on_loop();
    acceptor.stop();
  };
  come(3);
  ASSERT_TRUE(until_clients(1));
  turn();
  EXPECT_EQ(1U, owner_.clients.size());
  EXPECT_FALSE(acceptor_.copy()) << "its socket is closed";
  EXPECT_NE(0, acceptor_.address().port());
  resume();
}

TEST_F(AnAcceptor, AcceptsThoseWhoWaitBeforeItCloses) {
  start();
  come(3);
  exec::assume_on_loop();
  acceptor_.accept_waiting(2);
  EXPECT_EQ(2U, owner_.clients.size());
  acceptor_.accept_waiting(64);
  EXPECT_EQ(3U, owner_.clients.size());
  come(1);
  const Fd copy = acceptor_.copy();
  acceptor_.accept_waiting(64);
  EXPECT_EQ(3U, owner_.clients.size()) << "the queue belongs to the successor";
}

TEST_F(AnAcceptor, LeavesItsSocketToThoseWhoHaveACopy) {
  start();
  const Fd copy = acceptor_.copy();
  stop();
  come(1);
  EXPECT_TRUE(wait_readable(copy.get()));
}

TEST_F(AnAcceptor, RemovesTheFileOfItsSocketOnlyWhenItCloses) {
  const std::string path = ::testing::TempDir() + "carpool-acceptor-" + std::to_string(::getpid());
  start("unix:" + path);
  come(1);
  ASSERT_TRUE(until_clients(1));
  const Fd copy = acceptor_.copy();
  stop();
  EXPECT_TRUE(std::filesystem::exists(path));
  start("unix:" + path + "-2");
  close();
  EXPECT_FALSE(std::filesystem::exists(path + "-2"));
  std::filesystem::remove(path);
}

TEST_F(AnAcceptor, LeavesTheFileOfASocketThatASuccessorUses) {
  const std::string path = ::testing::TempDir() + "carpool-acceptor-s-" + std::to_string(::getpid());
  start("unix:" + path);
  EXPECT_TRUE(copy());
  EXPECT_TRUE(leaves_file(path));
  start("unix:" + path);
  EXPECT_TRUE(copy());
  exec::assume_on_loop();
  acceptor_.on_left(SocketUser::predecessor);
  acceptor_.on_left(SocketUser::successor);
  EXPECT_FALSE(leaves_file(path));
}

TEST_F(AnAcceptor, LeavesTheFileOfAnInheritedSocketUntilThePredecessorHasLeft) {
  const std::string path = ::testing::TempDir() + "carpool-acceptor-p-" + std::to_string(::getpid());
  exec::assume_on_loop();
  for (const bool left : {false, true}) {
    Result<Bound> bound = bind_and_listen("unix:" + path, 64);
    ASSERT_TRUE(bound) << bound.fault().detail;
    bound->inherited = true;
    ASSERT_TRUE(acceptor_.start(std::move(*bound)));
    acceptor_.on_left(left ? SocketUser::predecessor : SocketUser::successor);
    EXPECT_EQ(leaves_file(path), !left);
  }
}

TEST(ASocketFileForTheOwner, IsOpenToNobodyElse) {
  const std::string path = ::testing::TempDir() + "carpool-owner-" + std::to_string(::getpid());
  const Result<Bound> bound = bind_for_owner("unix:" + path, 4);
  ASSERT_TRUE(bound) << bound.fault().detail;
  struct stat status {};
  ASSERT_EQ(0, ::stat(path.c_str(), &status));
  EXPECT_EQ(0600U, status.st_mode & 0777U);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace carpool::proxy::net
