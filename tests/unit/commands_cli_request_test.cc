// Unit tests of command lines without an instance: the request each makes of the admin endpoint, and those that are
// rejected.
#include "proxy/commands/cli/request.h"

#include <gtest/gtest.h>

#include <vector>

#include "proxy/commands/cli/origin_word.h"

namespace carpool::proxy::cli {
namespace {

struct Line {
  Request request;
  std::string error;
  std::string asks;  // "GET /pools"
};

Line read(std::vector<const char*> words) {
  words.insert(words.begin(), "carpool");
  const int argc = static_cast<int>(words.size());
  Line line;
  line.request.command = command_of(argc, words.data());
  if (line.request.command == nullptr) return line;
  line.error = parse(line.request, argc, words.data());
  line.asks = std::string(method_of(line.request)) + " " + target_of(line.request, line.request.operand);
  return line;
}

TEST(ACommandLine, AsksWhatItsCommandStandsForInTheTable) {
  EXPECT_EQ(read({"pools"}).asks, "GET /pools");
  EXPECT_EQ(read({"ready"}).asks, "GET /readyz");
  EXPECT_EQ(read({"drain", "http://o:80/"}).asks, "POST /pools/http%3A%2F%2Fo%3A80%2F/drain");
}

TEST(ACommandLine, SendsItsSettingsAlongInTheirOwnNames) {
  EXPECT_EQ(read({"warm-up", "o", "--size", "3"}).asks, "POST /pools/o/warm-up?size=3");
  EXPECT_EQ(read({"reload", "--dry-run"}).asks, "POST /reload?dry_run=1");
  const Line line = read({"what-if", "--size=2", "--min-idle", "1", "o", "--max-waiting", "0", "--max-usage", "9",
                          "--idle-timeout", "30s", "--expire-time=1h", "--wait-timeout", "250ms", "--json"});
  EXPECT_EQ(line.error, "");
  EXPECT_EQ(line.asks,
            "GET /pools/o/what-if?size=2&min_idle=1&max_waiting=0&max_usage=9&idle_timeout=30s&expire_time=1h"
            "&wait_timeout=250ms");
}

TEST(ACommandLine, ShowsTheLogsLevelsAndSetsThemWhenOneIsNamed) {
  EXPECT_EQ(read({"log-level"}).asks, "GET /log-level");
  EXPECT_EQ(read({"log-level", "debug"}).asks, "PUT /log-level?level=debug");
  EXPECT_EQ(read({"--module", "tls", "log-level", "off"}).asks, "PUT /log-level?level=off&module=tls");
  EXPECT_EQ(read({"log-level", "--module", "tls"}).error, "`--module` requires a LEVEL");
}

TEST(ACommandLine, OfAnUnknownFlagHasNoCommandInItsValue) {
  const auto unknown = [](std::vector<const char*> words) {
    words.insert(words.begin(), "carpool");
    return begins_with_unknown_flag(static_cast<int>(words.size()), words.data());
  };
  EXPECT_TRUE(unknown({"--port", "3128"}));
  EXPECT_TRUE(unknown({"--config", "a.toml", "--port", "3128"}));
  EXPECT_TRUE(unknown({"--port=3128", "pools"}));
  EXPECT_FALSE(unknown({"--config", "a.toml", "pols"}));
  EXPECT_FALSE(unknown({"--config=a.toml", "--check", "pols"}));
  EXPECT_FALSE(unknown({"pols", "--port"}));
}

TEST(ACommandLine, AsksForTheHistoryOfAllOriginsOrOfOne) {
  EXPECT_EQ(read({"history"}).asks, "GET /history");
  EXPECT_EQ(read({"history", "http://o:80"}).asks, "GET /history?origin=http%3A%2F%2Fo%3A80");
}

TEST(ACommandLine, TakesTheLastOfAFlagGivenTwice) {
  EXPECT_EQ(read({"warm-up", "o", "--size", "3", "--size=4"}).asks, "POST /pools/o/warm-up?size=4");
}

TEST(ACommandLine, FindsItsCommandBehindFlagsAndTheirValues) {
  EXPECT_EQ(read({"--admin", "top", "--json", "pools"}).request.command, find_command("pools"));
  EXPECT_EQ(read({"--config=top", "leaks"}).request.command, find_command("leaks"));
  EXPECT_EQ(read({"--check"}).request.command, nullptr);
  EXPECT_EQ(read({"nonsense"}).request.command, nullptr);
}

TEST(ACommandLine, IsRefusedWhereItsCommandDoesNotTakeWhatItSays) {
  EXPECT_EQ(read({"pools", "--size", "3"}).error, "`--size` is not for pools; see carpool pools --help");
  EXPECT_EQ(read({"warm-up", "o", "--min-idle=1"}).error,
            "`--min-idle` is not for warm-up; see carpool warm-up --help");
  EXPECT_EQ(read({"man", "--json"}).error, "`--json` is not for man; see carpool man --help");
  EXPECT_EQ(read({"pools", "--sise"}).error, "`--sise` is not known; see carpool pools --help");
  EXPECT_EQ(read({"pools", "--jsn"}).error, "`--jsn` is not known; did you mean `--json`?");
  EXPECT_EQ(read({"warm-up", "o", "--sise=3"}).error, "`--sise` is not known; did you mean `--size`?");
  EXPECT_EQ(read({"warm-up", "o", "--size"}).error, "`--size` needs a value: N");
  EXPECT_EQ(read({"warm-up", "o", "--size="}).error, "`--size` needs a value: N");
  EXPECT_EQ(read({"pools", "--json=yes"}).error, "`--json` takes no value");
  EXPECT_EQ(read({"pools", "o"}).error, "`o` is an unexpected argument");
  EXPECT_EQ(read({"drain", "o", "p"}).error, "`p` is an unexpected argument");
}

// Such a line is an error of use (exit code 1) and needs no instance.
TEST(ACommandLine, IsRefusedWithTheValueThatIsWrongAndWhatWasExpected) {
  for (const char* const none : {"0", "x", "-1", "100001", "4294967297"}) {
    EXPECT_EQ(read({"what-if", "o", "--size", none}).error,
              "`--size`: `" + std::string(none) + "` is not a number from 1 to 100000");
  }
  EXPECT_EQ(read({"warm-up", "o", "--size=many"}).error, "`--size`: `many` is not a number from 1 to 100000");
  EXPECT_EQ(read({"what-if", "o", "--max-usage", "1048576"}).error,
            "`--max-usage`: `1048576` is not a number from 0 to 1048575");
  EXPECT_EQ(read({"what-if", "o", "--min-idle=0", "--max-usage=1048575", "--max-waiting=1000000"}).error, "");
  EXPECT_EQ(read({"what-if", "o", "--wait-timeout", "0s"}).error,
            "`--wait-timeout`: `0s` is not a time above zero such as 250ms, 30s, 10m or 1h");
  EXPECT_EQ(read({"what-if", "o", "--idle-timeout", "0s", "--expire-time", "0s"}).error, "");
  EXPECT_EQ(read({"what-if", "o", "--idle-timeout", "5"}).error,
            "`--idle-timeout`: `5` is not a time such as 250ms, 30s, 10m or 1h");
  EXPECT_EQ(read({"what-if", "o", "--idle-timeout", "0s"}).error, "") << "no limit";
  for (const char* const command : {"pause", "drain"}) {
    EXPECT_EQ(read({command, "o", "--for", "0s"}).error,
              "`--for`: `0s` is not a time above zero such as 250ms, 30s, 10m or 1h");
    EXPECT_EQ(read({command, "o", "--for", "10m"}).error, "");
  }
  EXPECT_NE(read({"advice", "o", "--wait=soon"}).error.find("`soon` is not a time above zero"), std::string::npos);
  EXPECT_EQ(read({"log-level", "loud"}).error, "LEVEL: `loud` is not trace, debug, info, warn, error or off");
  EXPECT_TRUE(
      read({"log-level", "info", "--module", "nobody"}).error.starts_with("`--module`: `nobody` is not access"));
  EXPECT_EQ(read({"log-level", "info", "--module", "house"}).error, "") << "the name before this release";
  EXPECT_EQ(read({"completion", "tcsh"}).error, "SHELL: `tcsh` is not bash, zsh or fish");
  EXPECT_EQ(read({"completion", "tcsh", "--help"}).error, "");
}

TEST(AnOrigin, IsNamedByItsAliasItsHostOrAnyPartThatIsItsOwn) {
  const Json origins =
      Json::parse(R"([{"origin": "http://a", "alias": ["pay"]}, {"origin": "http://a.b:81", "alias": []},
                                       {"origin": "https://orders", "alias": ["api", "b"]}])");
  EXPECT_EQ(find_origin("pay", origins).origin, "http://a");
  EXPECT_EQ(find_origin("a", origins).origin, "http://a") << "a whole host before a part of others";
  EXPECT_EQ(find_origin("b", origins).origin, "https://orders") << "an alias before a part";
  EXPECT_EQ(find_origin("81", origins).origin, "http://a.b:81");
  const OriginMatch both = find_origin("http", origins);
  EXPECT_TRUE(both.ambiguous);
  EXPECT_EQ(both.error, "\"http\" is part of 3 origins' URIs:\n  http://a\n  http://a.b:81\n  https://orders");
  EXPECT_EQ(find_origin("ordres", origins).error,
            "no origin has the alias \"ordres\" or a URI that contains it; did you mean `orders`?");
  EXPECT_EQ(find_origin("nowhere", Json::array()).error,
            "no origin has the alias \"nowhere\" or a URI that contains it; `carpool origins` lists them");
  EXPECT_EQ(origin_names(origins), "http://a\nhttp://a.b:81\nhttps://orders\npay\napi\nb\n");
}

TEST(TheTables, NameOnlyEachOther) {
  for (const Flag& flag : flags()) {
    bool taken = false;
    for (const Command& command : commands()) taken = taken || takes(command, flag);
    EXPECT_TRUE(taken) << flag.name;
  }
  EXPECT_FALSE(takes(*find_command("webhook"), *find_flag("--admin")));
  EXPECT_EQ(doc_among_others(*find_flag("--size")), "for warm-up and what-if: number of connections");
  EXPECT_EQ(doc_among_others(*find_flag("--json")), "print the response unchanged");
}

}  // namespace
}  // namespace carpool::proxy::cli
