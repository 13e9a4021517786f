// Unit tests of open_to_read(): what it opens, and what it refuses without waiting.
#include "base/open_to_read.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/contents.h"

namespace carpool {
namespace {

struct OpenToRead : ::testing::Test {
  OpenToRead() { folder = ::mkdtemp(name.data()); }
  ~OpenToRead() override { std::filesystem::remove_all(folder); }
  static std::string refusal(const std::string& path) {
    const Result<Fd> file = open_to_read(path);
    return file ? "" : file.fault().detail;
  }
  static std::string text(const Result<Fd>& file) { return file ? *contents(file, 100) : file.fault().detail; }

  std::string name = ::testing::TempDir() + "carpool-open-XXXXXX";
  std::string folder;
};

TEST_F(OpenToRead, TakesARegularFileAndLinksToIt) {
  std::ofstream(folder + "/file") << "text";
  std::filesystem::create_symlink("file", folder + "/link");
  std::filesystem::create_symlink("link", folder + "/link to link");
  for (const char* one : {"/file", "/link", "/link to link"}) EXPECT_EQ(text(open_to_read(folder + one)), "text");
}

TEST_F(OpenToRead, RefusesAFifoWithoutWaitingForAWriter) {
  const std::string fifo = folder + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(refusal(fifo), "is not a regular file");
  EXPECT_EQ(contents(fifo, 100).fault().detail, "is not a regular file");
}

TEST_F(OpenToRead, RefusesFoldersDevicesSocketsAndWhatIsNotThere) {
  EXPECT_EQ(refusal(folder), "is a directory");
  EXPECT_EQ(refusal("/dev/zero"), "is not a regular file");
  EXPECT_EQ(refusal(folder + "/none"), "No such file or directory");
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (folder + "/socket").c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_NE(refusal(folder + "/socket"), "");
}

TEST_F(OpenToRead, TakesTheNullDeviceAsAnEmptyFile) {
  EXPECT_EQ(text(open_to_read("/dev/null")), "");
}

TEST_F(OpenToRead, TakesAPipeOfTheShellAndWaitsForItsText) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const Fd reads(ends[0]);
  Fd writes(ends[1]);
  const Result<Fd> file = open_to_read("/dev/fd/" + std::to_string(reads.get()));
  ASSERT_TRUE(file) << file.fault().detail;
  std::thread writer([&] {
    EXPECT_EQ(::write(writes.get(), "text", 4), 4);
    writes.reset();
  });
  EXPECT_EQ(text(file), "text");
  writer.join();
}

TEST_F(OpenToRead, OfAnythingWaitsForTheWriterOfAFifo) {
  const std::string fifo = folder + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(fifo) << "text"; });
  EXPECT_EQ(text(open_any_to_read(fifo)), "text");
  writer.join();
}

}  // namespace
}  // namespace carpool
