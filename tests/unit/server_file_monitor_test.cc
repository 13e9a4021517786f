// Unit tests of the files that a reload reads: which changes are noticed and when, and which events are no change.
#include "proxy/server/reload/file_monitor.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "proxy/server/reload/file_snapshot.h"
#include "proxy/server/reload/reloader.h"
#include "tests/sim/session_world.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;

class AFile : public testing::Test {
 protected:
  AFile() {
    std::filesystem::create_directories(folder_);
    write("first");
  }
  ~AFile() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& text) { std::ofstream(file_, std::ios::trunc) << text; }
  FileSnapshot snapshot() const { return take_snapshots({file_}).front(); }

  const std::string folder_ = testing::TempDir() + "carpool-watch-" + std::to_string(::getpid());
  const std::string file_ = folder_ + "/file";
};

TEST_F(AFile, IsTheSameIfItsTextIs) {
  const FileSnapshot before = snapshot();
  write("other");
  EXPECT_NE(snapshot().digest, before.digest) << "of the same length";
  std::filesystem::remove(file_);
  EXPECT_NE(snapshot().digest, before.digest);
  write("first");
  EXPECT_EQ(snapshot().digest, before.digest) << "another file with the same text";
}

TEST_F(AFile, ThatIsLargeIsComparedByItsAttributes) {
  write(std::string(17 << 20, 'a') + "b");
  const FileSnapshot before = snapshot();
  std::filesystem::resize_file(file_, (17 << 20) + 2);
  EXPECT_NE(snapshot().digest, before.digest) << "the difference is behind what is read";
}

TEST(TheFilesOfTheAdminEndpoint, AreWatchedOnlyIfTheyAreRead) {
  config::Options source;
  source.config = "/main";
  config::Config config;
  config.admin.token_file = "/token";
  config.admin.cert_file = "/certificate";
  const auto files = [&] { return Reloader::files(source, config); };
  EXPECT_EQ(files(), (std::vector<std::string>{"/main", "/certificate"}));
  config.admin.address = "0.0.0.0:9901";
  EXPECT_EQ(files(), (std::vector<std::string>{"/main", "/token", "/certificate"}));
  config.admin.address = "unix:/socket";
  EXPECT_EQ(files(), (std::vector<std::string>{"/main", "/certificate"}));
  config.admin.enabled = false;
  EXPECT_EQ(files(), std::vector<std::string>{"/main"});
}

TEST(WhatWasRead, IsUnknownIfTheFileChangedBetweenTwoLooks) {
  const Digests digests = read_between({{1, 10}, {2, 20}, {3, 30}}, {{1, 10}, {9, 20}, {3, 31}});
  ASSERT_EQ(digests.size(), 3U);
  EXPECT_EQ(digests[0], 1U);
  EXPECT_FALSE(digests[1]);
  EXPECT_FALSE(digests[2]) << "a change that was undone";
  EXPECT_FALSE(read_between({{1, 10}}, {}).front()) << "a file that is not named any more";
}

class AWatch : public AFile {
 protected:
  AWatch() {
    exec::assume_on_loop();
    watch();
  }
  void watch() {
    exec::assume_on_loop();
    ASSERT_TRUE(watch_.watch({file_}, {snapshot().digest}));
  }
  void on_changed() { ++changes_; }
  // An event of inotify.
  void tell() {
    exec::assume_on_loop();
    ASSERT_EQ(loop_.watchers.size(), 1U);
    loop_.watchers.begin()->second->on_ready({true, false, false});
  }
  // Passes on the events of inotify, and returns true if there are any.
  bool event() {
    exec::assume_on_loop();
    if (loop_.watchers.empty()) return false;
    const auto [fd, watcher] = *loop_.watchers.begin();
    pollfd poll{fd, POLLIN, 0};
    if (::poll(&poll, 1, 0) != 1) return false;
    watcher->on_ready({true, false, false});
    return true;
  }
  void watch(const std::vector<std::string>& files) {
    exec::assume_on_loop();
    Digests digests;
    for (const FileSnapshot& one : take_snapshots(files)) digests.emplace_back(one.digest);
    const Status watched = watch_.watch(files, std::move(digests));
    fault_ = watched ? "" : watched.fault().detail;
    pass(10s);
  }
  void expect_changes(int count, const char* what) {
    EXPECT_TRUE(event()) << what;
    pass(10s);
    EXPECT_EQ(changes_, count) << what;
  }
  void pass(Duration time) {
    exec::assume_on_loop();
    now_ += time;
    loop_.timers.run_due(now_);
  }
  // Returns the time until a change is reported, or ten seconds.
  Duration reported_after(Duration step) {
    const int before = changes_;
    Duration passed{};
    for (; changes_ == before && passed < 10s; passed += step) pass(step);
    return passed;
  }

  Instant now_{std::chrono::hours(1)};
  test::SimLoop loop_{0, now_};
  int changes_ = 0;
  std::string fault_;  // of the last watch(files)
  FileMonitor watch_{loop_, exec::Bound::to<&AWatch::on_changed>(*this)};
};

TEST_F(AWatch, ReportsAChangeOnceItsFileIsQuiet) {
  pass(10s);
  EXPECT_EQ(changes_, 0);
  write("second");
  tell();
  EXPECT_EQ(reported_after(10ms), 400ms) << "two looks that agree";
  tell();
  pass(10s);
  EXPECT_EQ(changes_, 1) << "once";
}

TEST_F(AWatch, DoesNotReportAFileThatIsStillWritten) {
  pass(10s);
  write("half of ");
  tell();
  pass(200ms);
  write("half of it");
  pass(200ms);
  EXPECT_EQ(changes_, 0);
  pass(200ms);
  EXPECT_EQ(changes_, 1);
}

TEST_F(AWatch, ReportsAFileThatIsNeverQuietAfterTwoSeconds) {
  pass(10s);
  for (int n = 0; n < 25 && changes_ == 0; ++n) {
    write("text " + std::to_string(n));
    tell();
    pass(100ms);
    EXPECT_EQ(changes_, n < 19 ? 0 : 1) << n;
  }
}

TEST_F(AWatch, ReportsAFileThatChangesWithEachLookAfterTwoSeconds) {
  pass(10s);
  write("changed");
  tell();
  for (int n = 0; n < 15 && changes_ == 0; ++n) {
    pass(200ms);
    write("text " + std::to_string(n));
    EXPECT_EQ(changes_, n < 9 ? 0 : 1) << n;
  }
}

// The kernel keeps a limited number of events, and reports that it has dropped others.
TEST_F(AWatch, FollowsADirectoryThatWasReplacedWhileEventsWereLost) {
  pass(10s);
  std::ifstream limit("/proc/sys/fs/inotify/max_queued_events");
  std::size_t events = 0;
  ASSERT_TRUE(limit >> events);
  for (std::size_t n = 0; n <= events / 2; ++n) {  // two events each
    std::ofstream(folder_ + "/other").close();
    std::filesystem::remove(folder_ + "/other");
  }
  const std::string moved = folder_ + "-moved";
  std::filesystem::rename(folder_, moved);
  std::filesystem::create_directories(folder_);
  write("first");
  while (event()) pass(10s);
  EXPECT_EQ(changes_, 0);
  write("second");
  expect_changes(1, "in the directory that has the name now");
  std::filesystem::remove_all(moved);
}

TEST_F(AWatch, ReportsNoChangeThatWasTakenBack) {
  pass(10s);
  write("second");
  tell();
  pass(200ms);
  write("first");
  tell();
  pass(10s);
  EXPECT_EQ(changes_, 0);
  write("second");
  tell();
  pass(10s);
  EXPECT_EQ(changes_, 1);
  write("first");
  tell();
  pass(10s);
  EXPECT_EQ(changes_, 1) << "what is in force is what the file has";
}

TEST_F(AWatch, ReportsAChangeThatCameBeforeTheWatchWithoutAnEvent) {
  pass(10s);
  const std::size_t read = snapshot().digest;
  write("second");
  exec::assume_on_loop();
  ASSERT_TRUE(watch_.watch({file_}, {read}));
  EXPECT_EQ(reported_after(10ms), 400ms);
}

TEST_F(AWatch, ReportsAFileThatIsReadAgainBecauseItChangedWhileItWasRead) {
  exec::assume_on_loop();
  ASSERT_TRUE(watch_.watch({file_}, {std::nullopt}));
  EXPECT_EQ(reported_after(10ms), 400ms);
}

TEST_F(AWatch, FollowsTheFilesThatAReloadNames) {
  const std::string other = folder_ + "/sub/other";
  std::filesystem::create_directories(folder_ + "/sub");
  exec::assume_on_loop();
  ASSERT_TRUE(watch_.watch({other}, {take_snapshots({other}).front().digest}));
  pass(10s);
  write("second");
  tell();
  pass(10s);
  EXPECT_EQ(changes_, 0) << "a file that is not named any more";
  std::ofstream(other) << "text";
  tell();
  pass(10s);
  EXPECT_EQ(changes_, 1);
}

TEST_F(AWatch, FollowsASymbolicLinkOnTheWay) {
  for (const char* version : {"/one", "/two", "/three"}) {
    std::filesystem::create_directory(folder_ + version);
    std::ofstream(folder_ + version + "/file") << version;
  }
  const std::string link = folder_ + "/current", fresh = folder_ + "/fresh";
  std::filesystem::create_symlink("one", link);
  watch({link + "/file"});
  std::filesystem::create_symlink(folder_ + "/two", fresh);
  EXPECT_TRUE(event());
  std::filesystem::rename(fresh, link);
  expect_changes(1, "the link leads elsewhere");
  std::ofstream(folder_ + "/two/file") << "text";
  expect_changes(2, "a file behind the link");
  std::filesystem::remove(link);
  std::filesystem::create_symlink("three", link);
  expect_changes(3, "a link of the same name");
  std::ofstream(folder_ + "/one/file") << "text";
  EXPECT_FALSE(event()) << "it is not on the way any more";
}

TEST_F(AWatch, FollowsADirectoryThatIsReplaced) {
  const std::string place = folder_ + "/place", file = place + "/sub/file";
  const auto make = [&](const char* text) {
    std::filesystem::create_directories(place + "/sub");
    std::ofstream(file) << text;
  };
  make("first");
  watch({file});
  std::filesystem::rename(place, folder_ + "/old");
  make("second");
  expect_changes(1, "at once");
  std::ofstream(file) << "third";
  expect_changes(2, "the file of the new directory");
  std::filesystem::remove_all(place);
  expect_changes(3, "the file is gone");
  make("fourth");
  expect_changes(4, "later");
  std::ofstream(file) << "fifth";
  expect_changes(5, "the file of the last directory");
}

TEST_F(AWatch, WaitsForADirectoryThatDoesNotExist) {
  const std::string absent = folder_ + "/none/such/file";
  watch({file_, absent});
  EXPECT_EQ(fault_, "");
  write("second");
  expect_changes(1, "the other file");
  std::filesystem::create_directories(folder_ + "/none/such");
  EXPECT_TRUE(event());
  pass(10s);
  std::ofstream(absent) << "text";
  expect_changes(2, "the file that was absent");
}

TEST_F(AWatch, SaysEachTimeThatADirectoryCannotBeWatchedAndWatchesTheOthers) {
  const std::string locked = folder_ + "/locked", next = folder_ + "/next";  // in the order in which they are watched
  std::filesystem::create_directory(locked);
  std::filesystem::create_directory(next);
  std::ofstream(locked + "/file") << "text";
  using std::filesystem::perms;
  std::filesystem::permissions(locked, perms::owner_write | perms::owner_exec | perms::others_exec);
  ::setfsuid(65534);  // for root, whom no directory refuses
  for (int n = 1; n < 3; ++n) {
    watch({locked + "/file", next + "/file"});
    EXPECT_EQ(fault_, "not all files are watched: " + locked + ": Permission denied");
    ::setfsuid(::geteuid());
    std::ofstream(next + "/file") << n;
    ::setfsuid(65534);
    expect_changes(n, "the other file");
  }
  ::setfsuid(::geteuid());
  std::filesystem::permissions(locked, perms::all);
  watch({file_, locked + "/file"});
  EXPECT_EQ(fault_, "");
  std::ofstream(locked + "/file") << "other";
  expect_changes(3, "it may be watched now");
}

TEST_F(AWatch, ReportsAFileThatMayBeReadAgain) {
  const auto permit = [&](std::filesystem::perms permissions) {
    ::setfsuid(::geteuid());
    std::filesystem::permissions(file_, permissions);
    ::setfsuid(65534);  // for root, who may read every file
  };
  pass(10s);
  write("second");
  permit(std::filesystem::perms::none);
  expect_changes(1, "it cannot be read");
  permit(std::filesystem::perms::all);
  expect_changes(2, "its text is another one");
  permit(std::filesystem::perms{0444});
  expect_changes(2, "the same text");
  ::setfsuid(::geteuid());
}

class ADeferredChange : public AWatch {
 protected:
  ADeferredChange() {
    pass(10s);
    write("second");
    tell();
    EXPECT_EQ(reported_after(10ms), 400ms);
  }
  void try_again() {
    exec::assume_on_loop();
    watch_.try_again();
  }
};

TEST_F(ADeferredChange, IsReportedAgainAfterPausesThatDoubleToAMinute) {
  for (const Duration pause : {1s, 2s, 4s, 8s, 16s, 32s, 60s, 60s}) {
    const int before = changes_;
    try_again();
    pass(pause - 1ms);
    EXPECT_EQ(changes_, before);
    pass(1ms);
    EXPECT_EQ(changes_, before + 1);
  }
  pass(120s);
  EXPECT_EQ(changes_, 9) << "only on request";
}

TEST_F(ADeferredChange, IsNotReportedAgainOnceItIsInForceOrTakenBack) {
  try_again();
  watch();
  pass(10s);
  EXPECT_EQ(changes_, 1);
  try_again();
  pass(10s);
  EXPECT_EQ(changes_, 1) << "nothing differs";
  write("third");
  tell();
  pass(200ms);
  pass(200ms);
  EXPECT_EQ(changes_, 2);
  try_again();
  write("second");
  tell();
  pass(200ms);
  pass(200ms);
  pass(10s);
  EXPECT_EQ(changes_, 2);
}

}  // namespace
}  // namespace carpool::proxy
