#include "proxy/net/loopback_owner.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "proxy/net/peer_credentials.h"
#include "proxy/net/socket_processes.h"
#include "tests/unit/net_support.h"

namespace carpool::proxy::net {
namespace {

std::uint64_t inode_of(int fd) {
  struct stat status {};
  EXPECT_EQ(::fstat(fd, &status), 0);
  return status.st_ino;
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

TEST(LoopbackOwnerTest, IsFoundInEachFamilyOfAddresses) {
  for (const auto& [listens, connects] : {std::pair("[::1]:0", "::1"), std::pair("[::]:0", "127.0.0.1")}) {
    const Fd listener = listen_on(listens);
    const std::uint16_t port = Address::local_of(listener.get()).port();
    const Fd client = connect_to(*Address::literal(connects, port));
    wait_readable(listener.get());
    const Fd accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const auto owner = owner_of_peer(accepted.get());
    ASSERT_TRUE(owner) << listens;
    EXPECT_EQ(owner->inode, inode_of(client.get())) << listens;
  }
}

TEST(LoopbackOwnerTest, IsAskedForThroughOneSocketOfEachThread) {
  const auto [client, accepted] = tcp_pair();
  const auto descriptors = [] {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) count += entry.exists() ? 1 : 0;
    return count;
  };
  ASSERT_TRUE(owner_of_peer(accepted.get()));
  const std::size_t before = descriptors();
  for (int n = 0; n < 10; ++n) EXPECT_TRUE(owner_of_peer(accepted.get()));
  std::thread([&accepted = accepted] { EXPECT_TRUE(owner_of_peer(accepted.get())); }).join();
  EXPECT_EQ(descriptors(), before);
}

TEST(LoopbackOwnerTest, IsAskedForAgainAfterAQueryWithoutADescriptor) {
  ASSERT_TRUE(kernel_names_owners());
  const auto [client, accepted] = tcp_pair();
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  std::thread([&accepted = accepted, &before] {
    const rlimit none{0, before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
    EXPECT_FALSE(owner_of_peer(accepted.get()));
    ::setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_TRUE(owner_of_peer(accepted.get()));
  }).join();
}

// In a process of its own, because the result is kept.
TEST(LoopbackOwnerDeathTest, IsNotAskedForAgainWhereTheKernelNamesNone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto asks = [] {
    const auto [client, accepted] = tcp_pair();
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const rlimit none{0, before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);  // no socket can be created, as where sock_diag is forbidden
    const bool first = owner_of_peer(accepted.get()).has_value();
    ::setrlimit(RLIMIT_NOFILE, &before);
    const bool second = owner_of_peer(accepted.get()).has_value();
    const std::uint64_t key = fairness_key_of(accepted.get());
    ::_exit(!first && !second && key != 0 && key != fairness_key_of(client.get()) ? 0 : 1);
  };
  EXPECT_EXIT(asks(), ::testing::ExitedWithCode(0), "");
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

TEST(APeer, HasTheRightsOfItsUserOnlyIfItsProcessIsKnown) {
  PeerCredentials peer;
  EXPECT_FALSE(same_user(peer));
  peer.pid = 1;
  peer.uid = std::int64_t{::geteuid()} + 1;
  EXPECT_FALSE(same_user(peer)) << "another user";
  peer.uid = ::geteuid();
  EXPECT_TRUE(same_user(peer));
  peer.uid = 0;
  EXPECT_TRUE(same_user(peer));
  peer.pid.reset();
  EXPECT_FALSE(same_user(peer));
}

TEST(APeer, OfAUnixSocketIsItsProcess) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const Fd one(pair[0]), other(pair[1]);
  const PeerCredentials peer = peer_of(one.get());
  EXPECT_EQ(peer.pid, ::getpid());
  EXPECT_EQ(peer.uid, ::geteuid());
  EXPECT_TRUE(same_user(peer));
  EXPECT_EQ(fairness_key_of(one.get()), fairness_key_of_process(::getpid())) << "whatever the connection";
}

TEST(APeer, SharesItsTurnsByProcessUserContainerOrHostAndNeverWithAnotherKind) {
  const std::set<std::uint64_t> keys{fairness_key_of_process(5), fairness_key_of_process(6), fairness_key_of_user(5, 0),
                                     fairness_key_of_user(5, 1), fairness_key_of_user(6, 1), fairness_key_of_host("5")};
  EXPECT_EQ(keys.size(), 6U);
  EXPECT_EQ(fairness_key_of_user(5, 1), fairness_key_of_user(5, 1));
  const auto [client, accepted] = tcp_pair();
  const auto [second, accepted_too] = tcp_pair();
  EXPECT_NE(fairness_key_of(accepted.get()), fairness_key_of(accepted_too.get())) << "an address of all on this host";
}

TEST(SocketProcessesTest, FindTheProcessAfterOneReading) {
  exec::assume_on_loop();
  const auto [client, accepted] = tcp_pair();
  SocketProcesses processes;
  RunAtOnce tasks;
  const Instant now = Clock::now();
  EXPECT_FALSE(processes.find(inode_of(client.get()), tasks, now).known);
  const SocketProcesses::Owner owner = processes.find(inode_of(client.get()), tasks, now);
  EXPECT_TRUE(owner.known);
  EXPECT_EQ(owner.pid, ::getpid());
  EXPECT_EQ(tasks.submitted, 1);
}

// Entries of /proc that are no processes, and descriptors that are no sockets.
TEST(SocketProcessesTest, TakeOnlySocketsOfNumberedProcesses) {
  exec::assume_on_loop();
  const std::string proc = ::testing::TempDir() + "carpool-proc-" + std::to_string(::getpid());
  const auto holds = [&proc](const char* entry, const char* descriptor, const char* link) {
    std::filesystem::create_directories(proc + '/' + entry + "/fd");
    std::filesystem::create_symlink(link, proc + '/' + entry + "/fd/" + descriptor);
  };
  holds("12", "5", "socket:[900]");
  holds("13x", "5", "socket:[901]");
  holds("self", "5", "socket:[902]");
  holds("14", "0", "pipes::[903]");
  holds("14", "1", "socket:[904");
  holds("14", "2", "socket:[]");
  holds("14", "3", "socket:[905x]");
  SocketProcesses processes(proc);
  RunAtOnce tasks;
  const Instant now = Clock::now();
  for (std::uint64_t inode = 900; inode < 906; ++inode) processes.find(inode, tasks, now);
  processes.read_now();
  EXPECT_EQ(processes.find(900, tasks, now).pid, 12);
  for (std::uint64_t inode = 901; inode < 906; ++inode) {
    const SocketProcesses::Owner owner = processes.find(inode, tasks, now);
    EXPECT_TRUE(owner.known && owner.pid == 0) << inode << " of " << owner.pid;
  }
  std::filesystem::remove_all(proc);
}

TEST(SocketProcessesTest, FindAllSocketsOfAProcessInOneReading) {
  exec::assume_on_loop();
  const auto [client, accepted] = tcp_pair();
  const auto [second, accepted_too] = tcp_pair();
  SocketProcesses processes;
  RunAtOnce tasks;
  const Instant now = Clock::now();
  EXPECT_FALSE(processes.find(inode_of(client.get()), tasks, now).known);
  const SocketProcesses::Owner owner = processes.find(inode_of(second.get()), tasks, now);
  EXPECT_TRUE(owner.known);
  EXPECT_EQ(owner.pid, ::getpid());
  EXPECT_EQ(tasks.submitted, 1);
}

// A process that has no client is not remembered: its sockets would take the place of clients'.
TEST(SocketProcessesTest, FindOnlySocketsOfProcessesThatAreClients) {
  exec::assume_on_loop();
  const std::string proc = ::testing::TempDir() + "carpool-clients-" + std::to_string(::getpid());
  const auto holds = [&proc](const char* pid, const char* descriptor, const char* link) {
    std::filesystem::create_directories(proc + '/' + pid + "/fd");
    std::filesystem::create_symlink(link, proc + '/' + pid + "/fd/" + descriptor);
  };
  holds("12", "5", "socket:[900]");
  holds("12", "6", "socket:[901]");
  holds("13", "5", "socket:[902]");
  SocketProcesses processes(proc);
  RunAtOnce tasks;
  const Instant now = Clock::now();
  EXPECT_FALSE(processes.find(900, tasks, now).known);
  EXPECT_EQ(processes.find(901, tasks, now).pid, 12);
  EXPECT_FALSE(processes.find(902, tasks, now).known);
  std::filesystem::remove_all(proc);
}

// Each older process costs a reading of its descriptors.
TEST(SocketProcessesTest, LookAtTheNewestProcessesFirst) {
  exec::assume_on_loop();
  const std::string proc = ::testing::TempDir() + "carpool-newest-" + std::to_string(::getpid());
  for (const char* pid : {"9", "100", "20"}) {
    std::filesystem::create_directories(proc + '/' + pid + "/fd");
    std::filesystem::create_symlink("socket:[900]", proc + '/' + pid + "/fd/5");
  }
  SocketProcesses processes(proc);
  RunAtOnce tasks;
  const Instant now = Clock::now();
  processes.find(900, tasks, now);
  EXPECT_EQ(processes.find(900, tasks, now).pid, 100);
  std::filesystem::remove_all(proc);
}

TEST(SocketProcessesTest, ReadOnceAtATime) {
  exec::assume_on_loop();
  class Keep final : public exec::Submitter {
   public:
    bool submit(exec::TaskPtr task) override {
      kept.push_back(std::move(task));
      return true;
    }
    std::vector<exec::TaskPtr> kept;
  };
  SocketProcesses processes("/proc/self/no such directory");
  Keep tasks;
  processes.find(1, tasks, Clock::now());
  processes.find(2, tasks, Clock::now() + 1h);
  ASSERT_EQ(tasks.kept.size(), 1U);
  EXPECT_TRUE(exec::run_task(std::move(tasks.kept.front()), nullptr));
  EXPECT_TRUE(processes.find(2, tasks, Clock::now()).known);
}

TEST(SocketProcessesTest, SettleForNoneIfNoProcessHasTheSocket) {
  exec::assume_on_loop();
  SocketProcesses processes("/proc/self/no such directory");
  RunAtOnce tasks;
  EXPECT_FALSE(processes.find(7, tasks, Clock::now()).known);
  const SocketProcesses::Owner owner = processes.find(7, tasks, Clock::now());
  EXPECT_TRUE(owner.known);
  EXPECT_EQ(owner.pid, 0);
}

TEST(SocketProcessesTest, LookAgainWhenWhatIsKnownIsOld) {
  exec::assume_on_loop();
  SocketProcesses processes("/proc/self/no such directory");
  RunAtOnce tasks;
  EXPECT_FALSE(processes.find(7, tasks, Clock::now()).known);
  EXPECT_TRUE(processes.find(7, tasks, Clock::now() + SocketProcesses::kKnownFor - 1s).known);
  EXPECT_FALSE(processes.find(7, tasks, Clock::now() + SocketProcesses::kKnownFor + 1s).known);
  EXPECT_EQ(tasks.submitted, 2);
  EXPECT_TRUE(processes.find(7, tasks, Clock::now()).known);
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

// The sockets that were found last are known, the first are forgotten, and every query has a result.
TEST(SocketProcessesTest, LookForSocketsWithoutEndAndForgetTheFirst) {
  exec::assume_on_loop();
  SocketProcesses processes("/proc/self/no such directory");
  RunAtOnce tasks;
  tasks.runs = false;
  const std::uint64_t many = 2 * SocketProcesses::kMaxSockets;
  for (std::uint64_t inode = 1; inode <= many; ++inode) processes.find(inode, tasks, Clock::now());
  processes.read_now();
  EXPECT_TRUE(processes.find(1, tasks, Clock::now()).known);
  EXPECT_FALSE(processes.find(many, tasks, Clock::now()).known) << "more than are looked for at a time";
  for (std::uint64_t inode = many; inode < 2 * many; ++inode) {
    processes.find(inode, tasks, Clock::now());
    if (inode % 1000 != 0) continue;
    processes.read_now();
    ASSERT_TRUE(processes.find(inode, tasks, Clock::now()).known) << inode;
  }
  EXPECT_FALSE(processes.find(1, tasks, Clock::now()).known) << "more than are remembered";
}

// The pause is twenty times as long as the scan took.
TEST(SocketProcessesTest, PauseAfterEachReading) {
  exec::assume_on_loop();
  SocketProcesses processes("/proc/self/no such directory");
  RunAtOnce tasks;
  processes.find(1, tasks, Clock::now());
  const Instant after = Clock::now();
  processes.find(2, tasks, after);
  EXPECT_EQ(tasks.submitted, 1) << "within the pause";
  processes.find(3, tasks, after + 1h);
  EXPECT_EQ(tasks.submitted, 2);
}

// Directories named after processes, as in /proc.
class ProcDirectory {
 public:
  explicit ProcDirectory(const char* name)
      : path_(::testing::TempDir() + "carpool-" + name + std::to_string(::getpid())) {}
  ~ProcDirectory() { std::filesystem::remove_all(path_); }
  void begin(const char* pid, const char* link) {
    std::filesystem::create_directories(path_ + '/' + pid + "/fd");
    std::filesystem::create_symlink(link, path_ + '/' + pid + "/fd/3");
  }
  void hold(const char* pid, std::uint64_t inode) {
    std::filesystem::create_directories(path_ + '/' + pid + "/fd");
    std::filesystem::create_symlink("socket:[" + std::to_string(inode) + "]",
                                    path_ + '/' + pid + "/fd/" + std::to_string(inode));
  }
  void end(const char* pid) { std::filesystem::remove_all(path_ + '/' + pid); }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

// Connections that have ended take no place of new ones: a client that connects for each request has one reading for
// many.
TEST(SocketProcessesTest, FindAllSocketsOfAProcessInOneReadingHoweverManyItHasClosed) {
  exec::assume_on_loop();
  ProcDirectory proc("generations");
  SocketProcesses processes(proc.path());
  RunAtOnce tasks;
  constexpr std::uint64_t kSockets = SocketProcesses::kMaxSockets / 4;
  const Instant later = Clock::now() + 1h;  // no pause between the readings
  for (std::uint64_t first = 1; first <= 8 * kSockets; first += kSockets) {
    proc.end("12");
    for (std::uint64_t inode = first; inode < first + kSockets; ++inode) proc.hold("12", inode);
    const int before = tasks.submitted;
    EXPECT_FALSE(processes.find(first, tasks, later).known);
    for (std::uint64_t inode = first; inode < first + kSockets; ++inode) {
      ASSERT_EQ(processes.find(inode, tasks, later - 55min).pid, 12) << inode;
    }
    EXPECT_EQ(tasks.submitted, before + 1);
  }
}

TEST(SocketProcessesTest, ForgetTheSocketsOfAProcessThatHasEnded) {
  exec::assume_on_loop();
  ProcDirectory proc("ended");
  proc.hold("12", 900);
  proc.hold("12", 901);
  SocketProcesses processes(proc.path());
  RunAtOnce tasks;
  processes.find(900, tasks, Clock::now());
  EXPECT_EQ(processes.find(901, tasks, Clock::now()).pid, 12);
  proc.end("12");
  proc.hold("13", 901);
  processes.read_now();
  EXPECT_FALSE(processes.find(901, tasks, Clock::now()).known);
  processes.read_now();
  EXPECT_EQ(processes.find(901, tasks, Clock::now()).pid, 13);
}

TEST(SocketProcessesTest, ForgetTheClosedSocketsOfAProcessThatTheyRead) {
  exec::assume_on_loop();
  ProcDirectory proc("meanwhile");
  proc.hold("12", 900);
  proc.hold("12", 901);
  SocketProcesses processes(proc.path());
  RunAtOnce tasks;
  processes.find(900, tasks, Clock::now());
  EXPECT_TRUE(processes.find(901, tasks, Clock::now()).known);
  proc.end("12");
  proc.hold("12", 902);
  processes.find(902, tasks, Clock::now());
  processes.read_now();
  EXPECT_EQ(processes.find(902, tasks, Clock::now()).pid, 12);
  EXPECT_FALSE(processes.find(901, tasks, Clock::now()).known);
}

TEST(SocketProcessesTest, KnowTheFirstProcessOfEachUserUntilItEnds) {
  exec::assume_on_loop();
  ProcDirectory proc("first");
  proc.begin("12", "socket:[900]");
  proc.begin("13", "socket:[901]");
  SocketProcesses processes(proc.path());
  EXPECT_TRUE(processes.first_of(1000, 12));
  EXPECT_FALSE(processes.first_of(1000, 13)) << "the second one of this user";
  EXPECT_TRUE(processes.first_of(1001, 13)) << "the first one of another user";
  processes.read_now();
  EXPECT_TRUE(processes.first_of(1000, 12));
  EXPECT_FALSE(processes.first_of(1000, 13));
  proc.end("12");
  EXPECT_FALSE(processes.first_of(1000, 13)) << "its end is found by the next reading";
  processes.read_now();
  EXPECT_TRUE(processes.first_of(1000, 13));
  EXPECT_FALSE(processes.first_of(1000, 14));
}

TEST(SocketProcessesTest, KnowTheFirstProcessOfALimitedNumberOfUsers) {
  exec::assume_on_loop();
  SocketProcesses processes("/proc/self/no such directory");
  for (std::uint64_t user = 1; user <= 1024; ++user) ASSERT_TRUE(processes.first_of(user, 12));
  EXPECT_FALSE(processes.first_of(1025, 12));
  EXPECT_TRUE(processes.first_of(1024, 12)) << "known already";
}

TEST(SocketProcessesTest, AskAgainAfterATaskThatWasRefused) {
  exec::assume_on_loop();
  SocketProcesses processes("/proc/self/no such directory");
  RunAtOnce tasks;
  tasks.runs = false;
  EXPECT_FALSE(processes.find(7, tasks, Clock::now()).known);
  tasks.runs = true;
  EXPECT_FALSE(processes.find(7, tasks, Clock::now() + 1h).known);
  EXPECT_TRUE(processes.find(7, tasks, Clock::now()).known);
}

}  // namespace
}  // namespace carpool::proxy::net
