// Unit tests of bind_and_listen(): the files of Unix sockets, those of others and those that it makes.
#include "proxy/net/bind.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "tests/unit/net_support.h"

namespace carpool::proxy::net {
namespace {

struct ASocketFile : ::testing::Test {
  ASocketFile() { folder = ::mkdtemp(template_of_folder.data()); }
  ~ASocketFile() override { std::filesystem::remove_all(folder); }
  std::string text() const { return "unix:" + path(); }
  std::string path() const { return folder + "/a.sock"; }
  ino_t number() const {
    struct stat status {};
    return ::stat(path().c_str(), &status) == 0 ? status.st_ino : 0;
  }
  std::string template_of_folder = ::testing::TempDir() + "carpool-bind-XXXXXX";
  std::string folder;
};

TEST_F(ASocketFile, WithoutAListenerIsReplaced) {
  listen_on(text()).reset();
  const Result<Bound> bound = bind_and_listen(text(), 4);
  ASSERT_TRUE(bound) << bound.fault().detail;
  connect_to(bound->address);
}

TEST_F(ASocketFile, OfAListenerWithAFullAcceptQueueStaysAndDelaysNobody) {
  const Fd listener = listen_on(text(), 0);
  const Fd filler = connect_to(address(text()));
  const ino_t before = number();
  const Result<Bound> bound = bind_and_listen(text(), 4);
  ASSERT_FALSE(bound);
  EXPECT_NE(bound.fault().detail.find("Address already in use"), std::string::npos) << bound.fault().detail;
  EXPECT_EQ(number(), before);
}

TEST_F(ASocketFile, DoesNotReplaceAFileOfAnotherKind) {
  const std::string other = folder + "/other";
  const auto contents = [](const std::string& file) {
    std::string word;
    std::ifstream(file) >> word;
    return word;
  };
  for (const bool link : {false, true}) {
    std::ofstream(link ? other : path()) << "text";
    if (link) std::filesystem::create_symlink(other, path());
    const Result<Bound> bound = bind_and_listen(text(), 4);
    ASSERT_FALSE(bound);
    EXPECT_NE(bound.fault().detail.find("Address already in use"), std::string::npos) << bound.fault().detail;
    EXPECT_EQ(contents(path()), "text");
    std::filesystem::remove(path());
  }
}

TEST_F(ASocketFile, ThatAnotherFileHasReplacedIsNotRemoved) {
  {
    const Result<Bound> bound = bind_and_listen(text(), 4);
    ASSERT_TRUE(bound) << bound.fault().detail;
    std::filesystem::remove(path());
    std::ofstream(path()) << "text";
  }
  EXPECT_NE(number(), 0U);
}

TEST_F(ASocketFile, IsRemovedWithABoundSocketThatNoAcceptorTook) {
  {
    const Result<Bound> bound = bind_and_listen(text(), 4);
    ASSERT_TRUE(bound) << bound.fault().detail;
    EXPECT_NE(number(), 0U);
  }
  EXPECT_EQ(number(), 0U);
}

class AnotherFileAtThePath : public ASocketFile {
 protected:
  AnotherFileAtThePath() : bound(bind_and_listen(text(), 4)) { std::filesystem::remove(path()); }
  // Sets the mode at the path and returns the Fault.
  std::string refusal() const {
    const Status set = set_access(address(text()), {.mode = 0666, .group = ::getegid()});
    return set ? "none" : set.fault().detail;
  }
  static mode_t mode_of(const std::string& file) {
    struct stat status {};
    return ::lstat(file.c_str(), &status) == 0 ? status.st_mode & 0777U : 0;
  }
  const Result<Bound> bound;
};

TEST_F(AnotherFileAtThePath, KeepsItsMode) {
  std::ofstream(path()) << "text";
  ::chmod(path().c_str(), 0600);
  EXPECT_EQ(refusal(), "group of " + path() + ": another file has replaced the socket");
  EXPECT_EQ(mode_of(path()), 0600U);
}

TEST_F(AnotherFileAtThePath, KeepsItsModeIfALinkLeadsToIt) {
  const std::string secret = folder + "/secret", socket = folder + "/b.sock";
  std::ofstream(secret) << "text";
  const Fd other = listen_on("unix:" + socket);
  for (const std::string& file : {secret, socket}) {
    ::chmod(file.c_str(), 0600);
    std::filesystem::create_symlink(file, path());
    EXPECT_EQ(refusal(), "group of " + path() + ": another file has replaced the socket");
    EXPECT_EQ(mode_of(file), 0600U);
    std::filesystem::remove(path());
  }
}

TEST_F(AnotherFileAtThePath, KeepsItsModeIfItIsASocketOfAnotherUser) {
  const Fd other = listen_on(text());
  ::chmod(path().c_str(), 0600);
  if (::chown(path().c_str(), 1, static_cast<gid_t>(-1)) != 0) GTEST_SKIP() << "this takes root";
  EXPECT_EQ(refusal(), "group of " + path() + ": another user's socket has replaced this process's");
  EXPECT_EQ(mode_of(path()), 0600U);
}

TEST_F(ASocketFile, GetsModeAndGroup) {
  const Result<Bound> bound = bind_and_listen(text(), 4, {.mode = 0620, .group = ::getegid()});
  ASSERT_TRUE(bound) << bound.fault().detail;
  struct stat status {};
  ASSERT_EQ(::stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0620U);
  EXPECT_EQ(status.st_gid, ::getegid());
}

// Lets listen() fail on this thread.
bool forbid_listen() {
  std::array<sock_filter, 4> steps{{
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_listen},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOBUFS},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  }};
  const sock_fprog program{static_cast<unsigned short>(steps.size()), steps.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_F(ASocketFile, IsRemovedIfItsSocketCannotListen) {
  bool forbidden = false;
  std::string why;
  std::thread([&] {
    forbidden = forbid_listen();
    const Result<Bound> bound = bind_and_listen(text(), 4);
    if (!bound) why = bound.fault().detail;
  }).join();
  if (!forbidden) GTEST_SKIP() << "the system has no seccomp";
  EXPECT_NE(why.find("listen unix:"), std::string::npos) << why;
  EXPECT_EQ(number(), 0U);
}

}  // namespace
}  // namespace carpool::proxy::net
