// Unit tests of a start with closed standard streams, in a child process: the test's own stay open.
#include "proxy/server/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string_view>

namespace carpool::proxy {
namespace {

bool leads_to(int fd, std::string_view path) {
  char name[64];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), name, sizeof name);
  return length > 0 && std::string_view(name, static_cast<std::size_t>(length)) == path;
}

[[noreturn]] void start_without(std::initializer_list<int> closed) {
  for (const int fd : closed) ::close(fd);
  bool good = open_missing_standard_streams();
  for (const int fd : closed) good = good && leads_to(fd, "/dev/null");
  good = good && ::socket(AF_UNIX, SOCK_STREAM, 0) > STDERR_FILENO;
  for (const int fd : closed) good = good && (fd == STDIN_FILENO || ::write(fd, "x", 1) < 0);
  ::_exit(good ? 0 : 1);
}

TEST(AMissingStandardStream, IsHeldOpenSoThatNoSocketTakesItsNumber) {
  EXPECT_EXIT(start_without({2}), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(start_without({0}), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(start_without({1, 2}), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(start_without({0, 1, 2}), testing::ExitedWithCode(0), "");
}

TEST(AMissingStandardStream, IsTheOnlyOneThatIsTouched) {
  EXPECT_EXIT(
      {
        const int before = ::fcntl(STDERR_FILENO, F_GETFL);
        ::_exit(open_missing_standard_streams() && ::fcntl(STDERR_FILENO, F_GETFL) == before &&
                        !leads_to(STDERR_FILENO, "/dev/null")
                    ? 0
                    : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace carpool::proxy
