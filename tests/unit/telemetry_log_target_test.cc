// Unit tests of the targets of a log: files that are renamed, a syslog socket, systemd's journal.
#include "proxy/telemetry/log_target.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "proxy/telemetry/access_log.h"
#include "proxy/telemetry/log_syslog.h"

namespace carpool::proxy::log {
namespace {

class Folder {
 public:
  Folder() {
    std::string name = ::testing::TempDir() + "log-target-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

std::string contents(const std::string& path) {
  std::ostringstream all;
  all << std::ifstream(path).rdbuf();
  return all.str();
}

// The socket of a syslog daemon.
class Daemon {
 public:
  explicit Daemon(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    ::unlink(path.c_str());
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  std::string receive() const {
    std::array<char, 4096> datagram;
    const ssize_t size = ::recv(fd_.get(), datagram.data(), datagram.size(), MSG_DONTWAIT);
    return size < 0 ? std::string("nothing") : std::string(datagram.data(), static_cast<std::size_t>(size));
  }

 private:
  const Fd fd_;
};

TEST(LogTarget, AFileIsReopenedUnderItsNameAfterItWasRenamed) {
  const Folder folder;
  auto target = file_target(folder.file("a.log"));
  ASSERT_TRUE(target);
  EXPECT_EQ((*target)->write("one\n", 6), 0U);
  std::filesystem::rename(folder.file("a.log"), folder.file("a.log.1"));
  EXPECT_EQ((*target)->write("two\n", 6), 0U);
  ASSERT_TRUE((*target)->reopen());
  EXPECT_EQ((*target)->write("three\n", 6), 0U);
  EXPECT_EQ(contents(folder.file("a.log.1")), "one\ntwo\n");
  EXPECT_EQ(contents(folder.file("a.log")), "three\n");
  EXPECT_TRUE((*target)->sync());
}

TEST(LogTarget, AFileIsAppendedTo) {
  const Folder folder;
  std::ofstream(folder.file("a.log")) << "before\n";
  auto target = file_target(folder.file("a.log"));
  ASSERT_TRUE(target);
  (*target)->write("after\n", 6);
  EXPECT_EQ(contents(folder.file("a.log")), "before\nafter\n");
}

TEST(LogTarget, AFileThatCannotBeMadeIsAFaultThatNamesIt) {
  const auto target = file_target("/nonexistent/a.log");
  ASSERT_FALSE(target);
  EXPECT_EQ(target.fault().detail, "cannot open the log file /nonexistent/a.log: No such file or directory");
}

TEST(LogTarget, AFifoThatNoProcessReadsIsAFaultAtOnceAndOneThatIsReadGetsTheLines) {
  const Folder folder;
  const std::string fifo = folder.file("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const auto alone = file_target(fifo);
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.fault().detail, "cannot open the log file " + fifo + ": no process reads it");
  const Fd reader(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const auto target = file_target(fifo);
  ASSERT_TRUE(target) << target.fault().detail;
  EXPECT_EQ((*target)->write("line\n", 6), 0U);
  std::array<char, 64> text;
  EXPECT_EQ(::read(reader.get(), text.data(), text.size()), 5);
}

TEST(LogTarget, SyslogGetsADatagramForEachLineWithItsPriority) {
  const Folder folder;
  const Daemon daemon(folder.file("log"));
  auto target = syslog_target(folder.file("log"));
  ASSERT_TRUE(target);
  EXPECT_EQ((*target)->write("first\nsecond\n", 4), 0U);
  const std::string first = daemon.receive();
  EXPECT_TRUE(first.starts_with("<28>")) << first;  // daemon, warning
  EXPECT_TRUE(first.ends_with(" carpool[" + std::to_string(::getpid()) + "]: first")) << first;
  EXPECT_TRUE(daemon.receive().ends_with(": second"));
  EXPECT_EQ(daemon.receive(), "nothing");
  (*target)->write("third\n", 3);
  EXPECT_TRUE(daemon.receive().starts_with("<27>"));
}

TEST(LogTarget, ASyslogDaemonThatWasRestartedIsFoundAgainAndLinesBetweenAreCounted) {
  const Folder folder;
  auto first = std::make_unique<Daemon>(folder.file("log"));
  auto target = syslog_target(folder.file("log"));
  ASSERT_TRUE(target);
  first.reset();
  EXPECT_EQ((*target)->write("lost\nlost too\n", 6), 2U);
  const Daemon second(folder.file("log"));
  EXPECT_EQ((*target)->write("found\n", 6), 0U);
  EXPECT_TRUE(second.receive().ends_with(": found"));
}

TEST(LogTarget, ASyslogSocketWithoutADaemonIsAFault) {
  const auto target = syslog_target("/nonexistent/log");
  ASSERT_FALSE(target);
  EXPECT_EQ(target.fault().detail, "cannot connect to the syslog socket /nonexistent/log: No such file or directory");
}

TEST(LogTarget, LinesForTheJournalBeginWithTheirPriorityAndOthersDoNot) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const Fd reads(ends[0]), writes(ends[1]);
  struct stat about {};
  ASSERT_EQ(::fstat(writes.get(), &about), 0);
  const auto written = [&](const std::string& stream, int priority) {
    ::setenv("JOURNAL_STREAM", stream.c_str(), 1);
    EXPECT_EQ(descriptor_target(writes.get())->write("a\nb\n", priority), 0U);
    ::unsetenv("JOURNAL_STREAM");
    std::array<char, 64> text;
    const ssize_t size = ::read(reads.get(), text.data(), text.size());
    return std::string(text.data(), size < 0 ? 0 : static_cast<std::size_t>(size));
  };
  const std::string here = std::to_string(about.st_dev) + ":" + std::to_string(about.st_ino);
  EXPECT_EQ(written(here, 3), "<3>a\n<3>b\n");
  EXPECT_EQ(written(here, 7), "<7>a\n<7>b\n");
  EXPECT_EQ(written("1:1", 3), "a\nb\n") << "stderr is not the stream that systemd connected";
}

TEST(Log, TheAccessLogHasAFileOfItsOwn) {
  const Folder folder;
  Options options;
  options.file = folder.file("events.log");
  options.access_file = folder.file("access.log");
  ASSERT_TRUE(start(options));
  info("test", "an event");
  AccessLog access(Format::text);
  AccessEntry entry;
  entry.method = "GET";
  entry.target = "/x";
  access.write(entry);
  access.flush();
  stop();
  EXPECT_NE(contents(options.file).find("an event"), std::string::npos);
  EXPECT_EQ(contents(options.file).find("access"), std::string::npos);
  EXPECT_NE(contents(options.access_file).find("info  access request="), std::string::npos);
  EXPECT_EQ(contents(options.access_file).find("an event"), std::string::npos);
}

// The line of one entry in the combined format, without its time.
std::string combined(const AccessEntry& entry) {
  const Folder folder;
  Options options;
  options.access_file = folder.file("access.log");
  EXPECT_TRUE(start(options));
  AccessLog access(Format::combined);
  EXPECT_TRUE(access.wants_fields());
  access.write(entry);
  access.flush();
  stop();
  std::string line = contents(options.access_file);
  const std::size_t from = line.find('['), to = line.find(']');
  EXPECT_EQ(line.substr(to - 6, 6), " +0000") << line;
  return line.erase(from, to + 2 - from);
}

TEST(CombinedLine, HasTheFieldsOfApacheAndNginx) {
  AccessEntry entry;
  entry.client = "127.0.0.1:5000";
  entry.user = "alice";
  entry.method = "GET";
  entry.target = "/x?token=1";
  entry.protocol = "HTTP/1.1";
  entry.status = 200;
  entry.bytes_out = 1024;
  entry.referer = "http://a.example/?sig=2";
  entry.user_agent = "curl/8.0 \"quoted\"\n";
  EXPECT_EQ(combined(entry),
            "127.0.0.1 - alice \"GET /x?token=*** HTTP/1.1\" 200 1024 \"http://a.example/?sig=***\" "
            "\"curl/8.0 \\x22quoted\\x22\\x0A\"\n");
}

TEST(CombinedLine, HasDashesForWhatIsAbsent) {
  AccessEntry entry;
  entry.client = "[::1]:5000";
  entry.status = 400;
  EXPECT_EQ(combined(entry), "::1 - - \"-\" 400 0 \"-\" \"-\"\n");
}

TEST(CombinedLine, HasAClientWithoutASpace) {
  AccessEntry entry;
  entry.status = 200;
  const std::string rest = " - - \"-\" 200 0 \"-\" \"-\"\n";
  for (const auto& [client, host] : {std::pair{"carpool oauth2", "carpool"},
                                     {"carpool otlp", "carpool"},
                                     {"unix: pid=7", "unix:"},
                                     {"unix:", "unix:"}}) {
    entry.client = client;
    EXPECT_EQ(combined(entry), host + rest);
  }
}

}  // namespace
}  // namespace carpool::proxy::log
