// Unit tests of bind_and_listen(): the files of Unix sockets, those of others and those that it makes.
#include "proxy/net/bind.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

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
