// Unit tests of the stream to an instance: which wait a timeout names.
#include "proxy/commands/cli/admin_stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/fd.h"

namespace carpool::proxy::cli {
namespace {

// A listening Unix socket whose accept queue holds one connection.
class AnInstance : public ::testing::Test {
 protected:
  AnInstance() {
    path_ = ::testing::TempDir() + "carpool-admin-" + std::to_string(::getpid());
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::strncpy(name.sun_path, path_.c_str(), sizeof name.sun_path - 1);
    listener_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
    EXPECT_EQ(::listen(listener_.get(), 0), 0);
  }
  ~AnInstance() override { ::unlink(path_.c_str()); }
  Result<AdminStream> open() const { return AdminStream::open("unix:" + path_, {}, 1); }

  std::string path_;
  Fd listener_;
};

TEST_F(AnInstance, ThatDoesNotAcceptIsNotReportedAsOneThatDoesNotRespond) {
  const Result<AdminStream> first = open();
  ASSERT_TRUE(first) << first.fault().detail;
  const Result<AdminStream> second = open();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.fault().detail, "the connection timed out");
}

TEST_F(AnInstance, ThatAcceptsAndSendsNothingDoesNotRespond) {
  Result<AdminStream> stream = open();
  ASSERT_TRUE(stream) << stream.fault().detail;
  std::array<char, 8> buffer{};
  const Result<std::size_t> received = stream->receive(buffer);
  ASSERT_FALSE(received);
  EXPECT_EQ(received.fault().detail, "the response timed out");
}

}  // namespace
}  // namespace carpool::proxy::cli
