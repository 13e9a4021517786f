// Unit tests of the terminal output for a response.
#include "proxy/commands/cli/response.h"

#include <gtest/gtest.h>

#include "proxy/commands/cli/pools_table.h"
#include "proxy/commands/cli/top.h"

namespace carpool::proxy::cli {
namespace {

std::string shown_by(const char* command, const char* response) {
  return text_of(*find_command(command), Json::parse(response));
}

TEST(WhatIf, ShowsTheSimulatedSettingsBesideTheCurrentOnesAndTheOutcomeOfBoth) {
  EXPECT_EQ(shown_by("what-if", R"({"origin": "http://o", "borrows": 50,
      "current": {"settings": {"size": 64, "min_idle": 0},
                  "outcome": {"served": 50, "opened": {"first": 1}, "wait_seconds": {"p99": 0.25}}},
      "simulated": {"settings": {"size": 2, "min_idle": 1},
                    "outcome": {"served": 48, "opened": {"all_busy": 3}, "wait_seconds": {"p99": 1}}},
      "handshakes_saved": -2, "explanation": ["So it is."], "sentences": ["So it is."]})"),
            "origin   http://o\n"
            "borrows  50\n"
            "                 CURRENT  SIMULATED\n"
            "size                  64          2\n"
            "min_idle               0          1\n"
            "served                50         48\n"
            "opened first           1          -\n"
            "opened all_busy        -          3\n"
            "wait p99          250 ms        1 s\n"
            "handshakes_saved  -2\n"
            "explanation\n"
            "  -  So it is.\n");
}

TEST(Table, LetsNoTextControlATerminal) {
  const std::string shown = shown_by("connections", R"({"connections": [{"id": 1, "borrower":
      "GET http://o/\u001b[2J\u009b2J\u009d0;x\u009c\u007f\u00e9\u00c2"}]})");
  EXPECT_NE(shown.find("GET http://o/?[2J?2J?0;x??\u00e9\u00c2"), std::string::npos) << shown;
}

TEST(OnePool, IsShownWithoutCountersThatAreZero) {
  EXPECT_EQ(
      shown_by("pool", R"({"origin": "http://o", "waiting": 0, "connections": {"idle": 1, "tunnel": 0},
      "opened": {"first": 1, "all_busy": 0}, "closed": {"idle": 0}, "failures": {}})"),
      "origin    http://o\nwaiting   0\nconnections\n  idle  1\nopened\n  first  1\nclosed    none\nfailures  none\n");
}

TEST(TheLogsLevels, AreATableOfTheModulesThatHaveOneOfTheirOwnAndOfAllOthers) {
  EXPECT_EQ(shown_by("log-level", R"({"level": "info", "modules": {}})"), "MODULE  LEVEL\nall     info\n");
  EXPECT_EQ(shown_by("log-level", R"({"level": "info", "modules": {"access": "off", "tls": "debug"}})"),
            "MODULE  LEVEL\nothers  info\naccess  off\ntls     debug\n");
}

TEST(Values, HaveTheUnitOfTheirNameAndNumbersAreAlignedAtTheirRight) {
  EXPECT_EQ(shown_by("connections", R"({"connections": [
      {"id": 9, "state": "idle", "opened": "first", "age_seconds": 5400.0, "idle_seconds": 0.00025, "uses": 12,
       "protocol": "h2", "loop": 0, "peer": "127.0.0.1:80", "borrower": null},
      {"id": 10, "state": "borrowed", "opened": "all_busy", "age_seconds": 2.5, "idle_seconds": 0, "uses": 1,
       "protocol": "h1", "loop": 1, "peer": "[::1]:80", "borrower": "request 7"}]})"),
            "ID  STATE     OPENED      AGE    IDLE  USES  PROTO  LOOP  PEER          BORROWER\n"
            " 9  idle      first     1.5 h  250 us    12  h2        0  127.0.0.1:80  -\n"
            "10  borrowed  all_busy  2.5 s     0 s     1  h1        1  [::1]:80      request 7\n");
  EXPECT_EQ(shown_by("overload", R"({"memory": {"used": 1572864, "limit": null}, "descriptors": {"used": 1024}})"),
            "memory\n  used   1.5 MiB\n  limit  -\ndescriptors\n  used  1024\n");
  EXPECT_EQ(shown_by("threads", R"({"threads": [{"number": 1, "busy": true, "seconds": 90061.0}]})"),
            "threads\n  NUMBER  BUSY     FOR\n       1  yes   1.04 d\n");
}

TEST(OnePool, IsShownWithItsHistogramsInWordsAndNoTwoMembersOfOneName) {
  EXPECT_EQ(shown_by("pool", R"({"saved": {"dials": 9, "seconds": 0.00366}, "paused": true, "paused_seconds": 2.5,
      "histograms": {"age_seconds": [{"up_to": 0.1, "count": 3}, {"up_to": 15, "count": 0}, {"up_to": null, "count": 1}],
                     "uses": [{"up_to": 1, "count": 0}]},
      "addresses": [{"address": "127.0.0.1:80", "share": 1}]})"),
            "saved\n"
            "  dials  9\n"
            "  time   3.66 ms\n"
            "paused       yes\n"
            "paused_for   2.5 s\n"
            "histograms\n"
            "  age\n"
            "    up to 100 ms  3\n"
            "    more          1\n"
            "  uses  none\n"
            "addresses\n"
            "  ADDRESS       SHARE\n"
            "  127.0.0.1:80      1\n"
            "connections  none\nopened       none\nclosed       none\nfailures     none\n");
}

TEST(ThePools, ShowWhichOriginFailsAndHasEjectedAddresses) {
  const std::string shown = shown_by("pools", R"({"pools": [
      {"origin": "http://good", "active": 1, "ejected_addresses": 0, "failing": null, "probing": true},
      {"origin": "http://dead", "failing": {"requests": 5, "failed": 5, "reason": "refused"}, "ejected_addresses": 2},
      {"origin": "http://odd", "paused": true, "failing": {"requests": 5, "failed": 5, "reason": null}},
      {"origin": "http://old", "probing": true}]})");
  const auto state_of = [&](const std::string& origin) {
    const std::string line =
        shown.substr(shown.find(origin), shown.find('\n', shown.find(origin)) - shown.find(origin));
    return line.substr(line.find_last_of('-') == std::string::npos ? 0 : line.find_last_of('-'));
  };
  EXPECT_NE(shown.find("failing (refused), 2 ejected\n"), std::string::npos) << shown;
  EXPECT_NE(shown.find("paused, failing\n"), std::string::npos) << shown;
  EXPECT_EQ(state_of("http://good"), "-") << "the member `failing` decides";
  EXPECT_TRUE(state_of("http://old").ends_with("failing")) << "a program before this release";
}

class AFrame : public testing::Test {
 protected:
  std::vector<std::string> lines(std::size_t columns, std::size_t most = 0) {
    std::vector<std::string> found;
    const std::string text = top_table(pools, columns);
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
      found.push_back(text.substr(at, text.find('\n', at) - at));
      EXPECT_LE(width(found.back()), most == 0 ? columns : most) << found.back();
    }
    return found;
  }
  Json pools = Json::parse(R"([
      {"origin": "https://payments.internal.example.com:8443", "borrowed": 12, "waiting": 3, "per_second": 1234.5,
       "active": 20, "size": 64, "borrowable": 8, "connecting": 0, "max_wait_seconds": 0.0173, "peak": 31,
       "borrows": 12345678},
      {"origin": "http://b", "borrowed": 0, "waiting": 0, "per_second": null, "active": 0, "size": 64, "borrowable": 0,
       "connecting": 0, "max_wait_seconds": 0, "peak": 1, "borrows": 9}])");
};

TEST_F(AFrame, HasEachColumnWhereThereIsRoom) {
  EXPECT_EQ(
      lines(140).at(0),
      "ORIGIN                                      BUSY  WAITING    RATE  OPEN  SIZE  IDLE  DIALING  LONGEST  PEAK"
      "   BORROWS");
}

TEST_F(AFrame, LeavesColumnsOutWhereThereIsNotAndThenCutsOrigins) {
  EXPECT_EQ(lines(80).at(0), "ORIGIN                          BUSY  WAITING    RATE  OPEN  SIZE  IDLE  DIALING");
  EXPECT_EQ(lines(80).at(1).substr(0, 32), "https://payments.internal.exa+  ");
  EXPECT_EQ(lines(60).at(0), "ORIGIN                     BUSY  WAITING    RATE  OPEN  SIZE");
  for (std::size_t columns = 200; columns >= 35; --columns) {
    for (const std::string& line : lines(columns)) EXPECT_FALSE(line.empty());
  }
  EXPECT_EQ(lines(34, 71).at(0), "ORIGIN                                      BUSY  WAITING    RATE  OPEN")
      << "the screen cuts it";
}

TEST_F(AFrame, HasStatesWhileAnOriginHasOneAndWithoutTheirReasonWhereThereIsNoRoom) {
  pools[1]["failing"] = Json{{"requests", 5}, {"failed", 5}, {"reason", "refused"}};
  pools[1]["ejected_addresses"] = 2;
  EXPECT_EQ(lines(160).at(2).substr(0, 74),
            "http://b                                    failing (refused), 2 ejected  ");
  const auto narrow = lines(60);
  EXPECT_TRUE(narrow.at(0).starts_with("ORIGIN")) << narrow.at(0);
  EXPECT_NE(narrow.at(0).find("STATE     BUSY  WAITING    RATE  OPEN"), std::string::npos) << narrow.at(0);
  EXPECT_NE(narrow.at(2).find("failing+"), std::string::npos) << narrow.at(2);
}

TEST(ThePools, ThatFailComeFirst) {
  const Json sorted = busiest_first(Json::parse(R"([{"origin": "a", "borrowed": 9}, {"origin": "b", "borrows": 1},
      {"origin": "c", "failing": {"reason": null}}])"));
  EXPECT_EQ(sorted[0]["origin"], "c");
  EXPECT_EQ(sorted[1]["origin"], "a");
}

TEST(AWarmUp, SaysAtWhatItWasCapped) {
  EXPECT_EQ(shown_by("warm-up", R"({"opened": 5, "failure": null, "requested": 5, "capped_at": null, "made": 5})"),
            "opened   5\nfailure  -\n");
  EXPECT_EQ(shown_by("warm-up", R"({"opened": 8, "failure": null, "requested": 20, "capped_at": 8})"),
            "opened     8\nfailure    -\ncapped_at  8, the size of the pool now: 20 were requested\n");
  EXPECT_EQ(shown_by("warm-up", R"({"opened": 5, "failure": null})"), "opened   5\nfailure  -\n")
      << "of a program before this release";
}

TEST(AnEmptyList, IsNone) {
  EXPECT_EQ(shown_by("leaks", R"({"leaks": []})"), "leaks  none\n");
  EXPECT_EQ(shown_by("leaks", R"({"leaks": [{"kind": "held", "found_seconds_ago": 0.03}]})"),
            "leaks\n  KIND  FOUND_AGO\n  held      30 ms\n");
}

TEST(TheLeaks, NameTheBorrowerInOneText) {
  EXPECT_EQ(
      shown_by("leaks", R"({"leaks": [{"kind": "held", "borrower": {"request": "GET http://o/", "client": "[::1]:9",
      "user": "app", "pid": 7, "uid": 0, "trace_id": null, "phase": "waiting"}},
      {"kind": "held", "borrower": {"request": "GET http://o/", "client": "[::1]:9", "user": null, "pid": null, "uid": 0}},
      {"kind": "lost", "borrower": {"request": ""}}]})"),
      "leaks\n"
      "  KIND  BORROWER\n"
      "  held  GET http://o/ of [::1]:9 as app (pid 7, uid 0), waiting\n"
      "  held  GET http://o/ of [::1]:9 (uid 0)\n"
      "  lost  -\n");
}

TEST(TheAdvice, HasTheUnitOfAnObjectInItsMembers) {
  EXPECT_EQ(shown_by("advice", R"({"advice": {"hold_seconds": {"mean": 0.0523, "p99": 2}, "busy": {"max": 6}}})"),
            "advice\n  hold\n    mean  52.3 ms\n    p99   2 s\n  busy\n    max  6\n");
}

TEST(TheHistory, IsATableWithARowForEachPoint) {
  EXPECT_EQ(shown_by("history", R"({"origin": null, "every_seconds": 5.0, "ago_seconds": [7.5, 2.5],
      "requests_per_second": [0.0, 120.4], "failed_per_second": [0.0, 0.2], "p50_seconds": [null, 0.0012],
      "p99_seconds": [null, 0.25], "waiting": [0, 12], "busy": [0, 4], "open": [4, 4]})"),
            "  AGO  REQUESTS  FAILED     P50     P99  WAITING  BUSY  OPEN\n"
            "7.5 s       0/s     0/s       -       -        0     0     4\n"
            "2.5 s     120/s   0.2/s  1.2 ms  250 ms       12     4     4\n");
  EXPECT_EQ(shown_by("history", R"({"origin": "http://o", "ago_seconds": []})"), "none\n");
}

TEST(AResponse, IsShownWithoutTheNamesThatItsMembersHadBefore) {
  EXPECT_EQ(shown_by("overload", R"({"shed_level": "idle", "sheds": "idle", "heap": {"free_bytes": 1, "unused": 1}})"),
            "shed_level  idle\nheap\n  free  1 B\n");
  EXPECT_EQ(shown_by("advice", R"({"target_seconds": 0.5, "goal_seconds": 0.5})"), "target  500 ms\n");
  EXPECT_EQ(shown_by("overload", R"({"sheds": "idle"})"), "sheds  idle\n") << "of a program before this release";
}

TEST(AResponse, OfAnotherKindThanExpectedIsNoReasonToFail) {
  EXPECT_EQ(shown_by("pools", "{}"), "none\n");
  EXPECT_EQ(shown_by("what-if", R"({"current": 3})"), "  CURRENT  SIMULATED\n");
  EXPECT_EQ(shown_by("log-level", "{}"), "MODULE  LEVEL\nall         -\n");
}

}  // namespace
}  // namespace carpool::proxy::cli
