// Unit tests of the terminal output for a response.
#include "proxy/commands/cli/response.h"

#include <gtest/gtest.h>

namespace carpool::proxy::cli {
namespace {

std::string shown_by(const char* command, const char* answer) {
  return text_of(*find_command(command), Json::parse(answer));
}

TEST(WhatIf, ShowsTheSimulatedSettingsBesideTheCurrentOnesAndTheOutcomeOfBoth) {
  EXPECT_EQ(shown_by("what-if", R"({"origin": "http://o", "borrows": 50,
      "current": {"settings": {"size": 64, "min_idle": 0},
                  "outcome": {"served": 50, "opened": {"first": 1}, "wait_seconds": {"p99": 0.25}}},
      "simulated": {"settings": {"size": 2, "min_idle": 1},
                    "outcome": {"served": 48, "opened": {"all_busy": 3}, "wait_seconds": {"p99": 1}}},
      "handshakes_saved": -2, "explanation": ["So it is."], "sentences": ["So it is."]})"),
            "origin http://o\n"
            "borrows 50\n"
            "                  CURRENT  SIMULATED\n"
            "size                   64          2\n"
            "min_idle                0          1\n"
            "served                 50         48\n"
            "opened first            1          -\n"
            "opened all_busy         -          3\n"
            "wait_seconds p99     0.25          1\n"
            "handshakes_saved -2\n"
            "explanation\n"
            "  - So it is.\n");
}

TEST(OnePool, IsShownWithoutWhatNeverHappenedToIt) {
  EXPECT_EQ(shown_by("pool", R"({"origin": "http://o", "waiting": 0, "connections": {"idle": 1, "tunnel": 0},
      "opened": {"first": 1, "all_busy": 0}, "closed": {"idle": 0}, "failures": {}})"),
            "origin http://o\nwaiting 0\nconnections\n  idle 1\nopened\n  first 1\nclosed none\nfailures none\n");
}

TEST(TheLogsLevels, AreATableOfTheModulesThatHaveOneOfTheirOwnAndOfAllOthers) {
  EXPECT_EQ(shown_by("log-level", R"({"level": "info", "modules": {}})"), "MODULE  LEVEL\nall     info\n");
  EXPECT_EQ(shown_by("log-level", R"({"level": "info", "modules": {"access": "off", "tls": "debug"}})"),
            "MODULE  LEVEL\nothers  info\naccess  off\ntls     debug\n");
}

TEST(AnAnswer, IsShownWithoutTheNamesThatItsMembersHadBefore) {
  EXPECT_EQ(shown_by("overload", R"({"shed_level": "idle", "sheds": "idle", "heap": {"free_bytes": 1, "unused": 1}})"),
            "shed_level idle\nheap\n  free_bytes 1\n");
  EXPECT_EQ(shown_by("overload", R"({"sheds": "idle"})"), "sheds idle\n") << "of a program before this release";
}

TEST(AnAnswer, OfAnotherKindThanExpectedIsNoReasonToFail) {
  EXPECT_EQ(shown_by("pools", "{}"), "none\n");
  EXPECT_EQ(shown_by("what-if", R"({"current": 3})"), "  CURRENT  SIMULATED\n");
  EXPECT_EQ(shown_by("log-level", "{}"), "MODULE  LEVEL\nall         -\n");
}

}  // namespace
}  // namespace carpool::proxy::cli
