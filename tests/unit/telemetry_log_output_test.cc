// Unit tests of log output through a real pipe, with a reader that reads and one that does not.
#include "proxy/telemetry/log_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "proxy/telemetry/access_log.h"
#include "proxy/telemetry/log.h"
#include "proxy/telemetry/log_levels.h"

namespace carpool::proxy::log {
namespace {

class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe(ends_.data()), 0); }
  ~Pipe() {
    close(ends_[0]);
    end_writing();
  }
  int writer() const { return ends_[1]; }
  void end_writing() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }
  // Returns everything that was written; the writers must be closed.
  std::string read_all() {
    end_writing();
    std::string all;
    std::array<char, 4096> piece;
    for (ssize_t n = 0; (n = read(ends_[0], piece.data(), piece.size())) > 0;)
      all.append(piece.data(), static_cast<std::size_t>(n));
    return all;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(Log, WritesWhatWasLoggedBeforeItStops) {
  Pipe pipe;
  EXPECT_TRUE(start({Level::info, Format::json, pipe.writer()}));
  for (int i = 0; i < 100; ++i) info("test", "hello", {{"i", i}});
  stop();
  const std::string all = pipe.read_all();
  EXPECT_EQ(count(all, "\n"), 100U);
  EXPECT_NE(all.find(R"("level":"info","module":"test","message":"hello","i":99})"), std::string::npos);
}

TEST(Log, WritesNothingBelowItsLevelAndTheLevelCanChange) {
  Pipe pipe;
  EXPECT_TRUE(start({Level::warn, Format::text, pipe.writer()}));
  EXPECT_FALSE(enabled(Level::info, "test"));
  info("test", "unseen");
  set_level(Level::debug);
  EXPECT_TRUE(enabled(Level::debug, "test"));
  debug("test", "seen");
  set_level(Level::off);
  error("test", "unseen");
  EXPECT_FALSE(enabled(Level::off, "test"));
  stop();
  const std::string all = pipe.read_all();
  EXPECT_EQ(count(all, "\n"), 1U);
  EXPECT_NE(all.find("debug test: seen"), std::string::npos);
}

TEST(Log, AModuleMayTellMoreThanTheProgramAndStopsWhenTheProgramChanges) {
  set_level(Level::warn);
  ASSERT_TRUE(set_level("pool", Level::debug));
  EXPECT_TRUE(enabled(Level::debug, "pool"));
  EXPECT_FALSE(enabled(Level::trace, "pool"));
  EXPECT_FALSE(enabled(Level::info, "dial"));
  ASSERT_TRUE(set_level("pool", Level::error));
  EXPECT_FALSE(enabled(Level::warn, "pool"));
  EXPECT_TRUE(enabled(Level::warn, "dial"));
  set_level(Level::info);
  EXPECT_TRUE(enabled(Level::info, "pool"));
}

TEST(Log, TakesLinesOfManyThreadsWhole) {
  Pipe pipe;
  EXPECT_TRUE(start({Level::info, Format::text, pipe.writer()}));
  const std::uint64_t before = dropped();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 50; ++i) info("test", "whole line", {{"end", true}});
    });
  }
  for (auto& thread : threads) thread.join();
  stop();
  const std::string all = pipe.read_all();
  EXPECT_EQ(count(all, "whole line end=true\n"), 200U - (dropped() - before));
  EXPECT_EQ(count(all, "\n"), count(all, "whole line end=true\n"));
}

TEST(Log, NeverWaitsForAReaderThatSleepsButCountsWhatItDrops) {
  Pipe pipe;
  EXPECT_TRUE(start({Level::info, Format::text, pipe.writer()}));
  const std::uint64_t before = dropped();
  const std::string big(1000, 'x');
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 2000; ++i) info("test", big);  // far more than a pipe holds
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
  stop();  // abandons the reader after a bounded time
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
  const std::size_t written = count(pipe.read_all(), "\n");
  EXPECT_GT(written, 10U);
  EXPECT_EQ(written + (dropped() - before), 2000U);
}

TEST(Log, IsOnDiskAfterASyncWhereItIsAFile) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(nullptr, file);
  Options options;
  options.fd = fileno(file);
  EXPECT_TRUE(start(options));
  EXPECT_TRUE(sync());
  stop();
  std::fclose(file);
  int ends[2];
  ASSERT_EQ(0, pipe(ends));
  options.fd = ends[1];
  EXPECT_TRUE(start(options));
  EXPECT_FALSE(sync()) << "a pipe has no disk";
  stop();
  close(ends[0]);
  close(ends[1]);
}

// A file that accepts no byte after `bytes` until let(), like a full disk.
class FullFile {
 public:
  explicit FullFile(rlim_t bytes) : fd_(::memfd_create("log", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    std::signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit small{bytes, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  }
  ~FullFile() {
    let();
    close(fd_);
  }
  void let() const { EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before_), 0); }
  void never_shorten() const { EXPECT_EQ(::fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK), 0); }
  int fd() const { return fd_; }
  std::string contents() const {
    std::string all(4096, '\0');
    const ssize_t n = ::pread(fd_, all.data(), all.size(), 0);
    all.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return all;
  }

 private:
  const int fd_;
  rlimit before_{};
};

// Writes a line, then one for which the file has no space, then makes space, then writes another.
std::string log_through(const FullFile& file) {
  const std::uint64_t before = dropped();
  EXPECT_TRUE(start({Level::info, Format::text, file.fd()}));
  info("test", "first");
  info("test", std::string(1000, 'x'));
  while (dropped() == before) std::this_thread::yield();
  file.let();
  info("test", "last");
  stop();
  EXPECT_EQ(dropped() - before, 1U);
  return file.contents();
}

TEST(Log, LeavesNoPartOfALineInAFullFile) {
  const FullFile file(300);
  const std::string all = log_through(file);
  EXPECT_EQ(count(all, "\n"), 2U) << all;
  EXPECT_NE(all.find("first\n2"), std::string::npos) << all;
  EXPECT_TRUE(all.ends_with("test: last\n")) << all;
  EXPECT_EQ(all.find('x'), std::string::npos) << all;
}

TEST(Log, BeginsOnALineOfItsOwnBehindOneThatWasCut) {
  const FullFile file(300);
  file.never_shorten();
  const std::string all = log_through(file);
  EXPECT_EQ(count(all, "\n"), 3U) << all;
  EXPECT_NE(all.find("x\n2"), std::string::npos) << all;
}

TEST(Log, CountsLinesForADescriptorThatCannotBeWritten) {
  const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const std::uint64_t before = dropped();
  EXPECT_TRUE(start({Level::info, Format::text, fd}));
  info("test", "to nobody");
  stop();
  EXPECT_EQ(dropped() - before, 1U);
  close(fd);
}

TEST(Log, OutlivesAReaderThatLeft) {
  signal(SIGPIPE, SIG_IGN);
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  close(ends[0]);
  const std::uint64_t before = dropped();
  EXPECT_TRUE(start({Level::info, Format::text, ends[1]}));
  info("test", "to nobody");
  stop();
  EXPECT_EQ(dropped() - before, 1U);
  close(ends[1]);
}

AccessEntry entry() {
  AccessEntry entry;
  entry.began = Clock::now();
  entry.loop = 1;
  entry.request = 7;
  entry.client = "127.0.0.1:5000";
  entry.protocol = "HTTP/1.1";
  entry.tls = "TLSv1.3";
  entry.method = "GET";
  entry.target = "/x?token=1";
  entry.origin = "http://a";
  entry.status = 200;
  entry.bytes_in = 1;
  entry.bytes_out = 1024;
  entry.connection = 12;
  entry.reuse = 3;
  entry.upstream_protocol = "HTTP/2.0";
  entry.waited = std::chrono::microseconds(5);
  entry.upstream = std::chrono::microseconds(1200);
  entry.total = std::chrono::microseconds(1300);
  return entry;
}

TEST(AccessLog, WritesOneLinePerExchangeWhenFlushed) {
  Pipe pipe;
  EXPECT_TRUE(start({Level::warn, Format::json, pipe.writer()}));
  AccessLog access(Format::json);
  EXPECT_TRUE(access.write(entry())) << "a flush is due";
  AccessEntry failed = entry();
  failed.status = 502;
  failed.connection = 0;
  failed.opened = "all_busy";
  failed.retries = 1;
  failed.fault = "connection refused";
  EXPECT_FALSE(access.write(failed)) << "one is due already";
  access.flush();
  access.flush();
  stop();
  const std::string all = pipe.read_all();
  EXPECT_EQ(count(all, "\n"), 2U);
  EXPECT_NE(
      all.find(R"(-1-7","client":"127.0.0.1:5000","client_protocol":"HTTP/1.1","client_tls":"TLSv1.3","method":"GET",)"
               R"("target":"/x?token=***","origin":"http://a","status":200,"bytes_in":1,"bytes_out":1024,)"
               R"("connection":12,"reuse":3,"upstream_protocol":"HTTP/2.0",)"
               R"("wait_seconds":0.000005,"upstream_seconds":0.001200,"total_seconds":0.001300})"),
      std::string::npos)
      << all;
  EXPECT_NE(all.find(R"("opened":"all_busy","retries":1,"fault":"connection refused"})"), std::string::npos) << all;
}

TEST(AccessLog, HandsFullChunksOnByItself) {
  Pipe pipe;
  EXPECT_TRUE(start({Level::info, Format::text, pipe.writer()}));
  AccessLog access(Format::text);
  for (int i = 0; i < 200; ++i) access.write(entry());
  stop();
  EXPECT_GT(count(pipe.read_all(), "\n"), 50U);
}

TEST(AccessLog, LeavesOutWhatARequestDidNotHaveAndBoundsWhatIsLong) {
  Pipe pipe;
  ASSERT_TRUE(start({Level::warn, Format::json, pipe.writer()}));
  AccessLog access(Format::json);
  AccessEntry one = entry();
  one.connection = 0;
  one.waited.reset();
  one.upstream.reset();
  const std::string method(100, 'M'), fault(2000, 'f');
  one.method = method;
  one.fault = fault;
  one.unrepeated = "a request with a body may have been processed";
  access.write(one);
  access.flush();
  stop();
  const std::string all = pipe.read_all();
  for (const char* absent :
       {"\"connection\"", "\"reuse\"", "\"wait_seconds\"", "\"upstream_seconds\"", "\"retries\""}) {
    EXPECT_EQ(all.find(absent), std::string::npos) << absent;
  }
  EXPECT_NE(all.find("\"method\":\"" + std::string(32, 'M') + "\""), std::string::npos) << all;
  EXPECT_NE(all.find("\"fault\":\"" + std::string(512, 'f') + "\""), std::string::npos) << all;
  EXPECT_NE(all.find(R"("not_repeated":"a request with a body may have been processed")"), std::string::npos) << all;
}

TEST(AccessLog, CountsEachLineOnceThatCannotBeWritten) {
  const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const std::uint64_t before = dropped();
  ASSERT_TRUE(start({Level::info, Format::text, fd}));
  AccessLog access(Format::text);
  for (int chunk = 0; chunk < 3; ++chunk) {
    access.write(entry());
    access.write(entry());
    access.flush();
  }
  stop();
  EXPECT_EQ(dropped() - before, 6U);
  close(fd);
}

TEST(AccessLog, TellsTheTimeOfTheWall) {
  Pipe pipe;
  EXPECT_TRUE(start({Level::info, Format::text, pipe.writer()}));
  AccessLog access(Format::text);
  access.write(entry());
  access.flush();
  stop();
  std::array<char, 32> day{};
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::strftime(day.data(), day.size(), "%Y-%m-", &parts);
  EXPECT_EQ(pipe.read_all().substr(0, 8), day.data());
}

}  // namespace
}  // namespace carpool::proxy::log
