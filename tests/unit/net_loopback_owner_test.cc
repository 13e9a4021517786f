#include "proxy/net/loopback_owner.h"

#include <sys/stat.h>

#include "proxy/net/peer_credentials.h"
#include "proxy/net/socket_processes.h"
#include "tests/unit/net_support.h"

namespace carpool::proxy::net {
namespace {

std::uint64_t inode_of(int fd) {
  struct stat facts {};
  EXPECT_EQ(::fstat(fd, &facts), 0);
  return facts.st_ino;
}

// Runs each task at once, and counts them.
class RunAtOnce final : public exec::Submitter {
 public:
  bool submit(exec::TaskPtr task) override {
    ++submitted;
    return runs && exec::run_task(std::move(task), nullptr);  // a task that does not run is closed
  }
  int submitted = 0;
  bool runs = true;
};

TEST(LoopbackOwnerTest, IsTheSocketAtTheOtherEnd) {
  ASSERT_TRUE(kernel_names_owners());
  const auto [client, accepted] = tcp_pair();
  const auto owner = owner_of_peer(accepted.get());
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->uid, ::geteuid());
  EXPECT_EQ(owner->inode, inode_of(client.get()));
}

TEST(LoopbackOwnerTest, IsUnknownOnceThePeerIsGoneAndForUnixSockets) {
  auto [client, accepted] = tcp_pair();
  client.reset();
  EXPECT_FALSE(owner_of_peer(accepted.get()));
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const Fd one(pair[0]), other(pair[1]);
  EXPECT_FALSE(owner_of_peer(one.get()));
}

// The user of a TCP socket is not proven as by SO_PEERCRED: its process may have passed it on.
TEST(LoopbackOwnerTest, GivesNoRightsToATcpPeer) {
  const auto [client, accepted] = tcp_pair();
  const PeerCredentials peer = peer_of(accepted.get());
  EXPECT_EQ(peer.uid, ::geteuid());
  EXPECT_FALSE(same_user(peer));
}

TEST(SocketProcessesTest, FindTheProcessAfterOneReading) {
  exec::assume_on_loop();
  const auto [client, accepted] = tcp_pair();
  SocketProcesses processes;
  RunAtOnce tasks;
  const Instant now = Clock::now();
  EXPECT_FALSE(processes.find(inode_of(client.get()), tasks, now).settled);
  const SocketProcesses::Answer answer = processes.find(inode_of(client.get()), tasks, now);
  EXPECT_TRUE(answer.settled);
  EXPECT_EQ(answer.pid, ::getpid());
  EXPECT_EQ(tasks.submitted, 1);
}

TEST(SocketProcessesTest, SettleForNoneIfNoProcessHasTheSocket) {
  exec::assume_on_loop();
  SocketProcesses processes("/proc/self/no such directory");
  RunAtOnce tasks;
  EXPECT_FALSE(processes.find(7, tasks, Clock::now()).settled);
  const SocketProcesses::Answer answer = processes.find(7, tasks, Clock::now());
  EXPECT_TRUE(answer.settled);
  EXPECT_EQ(answer.pid, 0);
}

TEST(SocketProcessesTest, ReadAgainOnlyAfterAPause) {
  exec::assume_on_loop();
  SocketProcesses processes("/proc/self/no such directory");
  RunAtOnce tasks;
  const Instant now = Clock::now();
  for (std::uint64_t inode = 1; inode < 100; ++inode) processes.find(inode, tasks, now);
  EXPECT_EQ(tasks.submitted, 1);
  processes.find(200, tasks, Clock::now() + 1h);
  EXPECT_EQ(tasks.submitted, 2);
}

TEST(SocketProcessesTest, AskAgainAfterATaskThatWasRefused) {
  exec::assume_on_loop();
  SocketProcesses processes("/proc/self/no such directory");
  RunAtOnce tasks;
  tasks.runs = false;
  EXPECT_FALSE(processes.find(7, tasks, Clock::now()).settled);
  tasks.runs = true;
  EXPECT_FALSE(processes.find(7, tasks, Clock::now() + 1h).settled);
  EXPECT_TRUE(processes.find(7, tasks, Clock::now()).settled);
}

}  // namespace
}  // namespace carpool::proxy::net
