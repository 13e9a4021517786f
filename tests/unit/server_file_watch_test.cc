// Unit tests of the files that a reload reads: which changes are noticed and when, and which events are no change.
#include "proxy/server/reload/file_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "proxy/server/reload/file_snapshot.h"
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
  FileSnapshot look() const { return look_at({file_}).front(); }

  const std::string folder_ = testing::TempDir() + "carpool-watch-" + std::to_string(::getpid());
  const std::string file_ = folder_ + "/file";
};

TEST_F(AFile, IsTheSameIfItsTextIs) {
  const FileSnapshot before = look();
  write("other");
  EXPECT_NE(look().digest, before.digest) << "of the same length";
  std::filesystem::remove(file_);
  EXPECT_NE(look().digest, before.digest);
  write("first");
  EXPECT_EQ(look().digest, before.digest) << "another file with the same text";
}

TEST_F(AFile, ThatIsLargeIsComparedByItsAttributes) {
  write(std::string(17 << 20, 'a') + "b");
  const FileSnapshot before = look();
  std::filesystem::resize_file(file_, (17 << 20) + 2);
  EXPECT_NE(look().digest, before.digest) << "the difference is behind what is read";
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
    ASSERT_TRUE(watch_.watch({file_}, {look().digest}));
  }
  void on_changed() { ++changes_; }
  // An event of inotify.
  void tell() {
    exec::assume_on_loop();
    ASSERT_EQ(loop_.watchers.size(), 1U);
    loop_.watchers.begin()->second->on_ready({true, false, false});
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
  FileWatch watch_{loop_, exec::Bound::to<&AWatch::on_changed>(*this)};
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
  const std::size_t read = look().digest;
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
  ASSERT_TRUE(watch_.watch({other}, {look_at({other}).front().digest}));
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
