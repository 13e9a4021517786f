// Unit tests of leaks, explanations, advice and replays in the admin endpoint's responses.
#include "proxy/server/admin/handlers/analysis.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "proxy/server/admin/handlers/leaks.h"
#include "tests/unit/server_admin_support.h"

namespace carpool::proxy::admin {
namespace {

using ParsedJson = nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

const Instant kNow(std::chrono::hours(1));

ParsedJson parsed(const Response& response) {
  EXPECT_EQ(response.status, 200) << response.body;
  return ParsedJson::parse(response.body);
}

LeakRecord held() {
  LeakRecord leak;
  leak.id = 7;
  leak.origin = "http://a.example";
  leak.action = "report";
  leak.found = kNow - seconds(5);
  leak.borrower = {
      42, "GET http://a.example/x", "receiving the response body", "127.0.0.1:5000", "", {}, {}, "", seconds(3), 1, 2};
  return leak;
}

TEST(Leaks, NameTheBorrowerAndHowLongItHasHeldByNow) {
  const ParsedJson leak = parsed(whole(leaks_response({held()}, kNow))).at("leaks").at(0);
  EXPECT_EQ(leak.at("kind"), "held");
  EXPECT_EQ(leak.at("age_seconds"), 8.0) << "three when it was found, five since";
  EXPECT_EQ(leak.at("returned"), false);
  EXPECT_EQ(leak.at("connection"), 42);
  EXPECT_EQ(leak.at("borrower").at("request"), "GET http://a.example/x");
  EXPECT_TRUE(leak.at("borrower").at("pid").is_null());
  EXPECT_TRUE(leak.at("borrower").at("trace_id").is_null());
}

TEST(Leaks, StopAgeingWhenTheyAreReturnedOrWereLost) {
  LeakRecord back = held(), lost = held();
  back.returned_after = seconds(4);
  lost.kind = LeakKind::lost;
  const ParsedJson leaks = parsed(whole(leaks_response({back, lost}, kNow))).at("leaks");
  EXPECT_EQ(leaks[0].at("age_seconds"), 4.0);
  EXPECT_EQ(leaks[1].at("age_seconds"), 3.0);
  EXPECT_EQ(leaks[0].at("returned"), true);
  EXPECT_EQ(leaks[1].at("kind"), "lost");
}

TEST(Leaks, SayWhoItIsInOneLine) {
  BorrowerInfo who = held().borrower;
  EXPECT_EQ(borrower_text(who), "GET http://a.example/x of 127.0.0.1:5000, receiving the response body");
  who.pid = 12;
  who.uid = 1000;
  who.client = "unix";
  EXPECT_EQ(borrower_text(who), "GET http://a.example/x of unix (pid 12, uid 1000), receiving the response body");
}

class APoolAnalysis : public testing::Test {
 protected:
  APoolAnalysis() {
    info.origin = "http://a.example";
    info.snapshot.dial_time = milliseconds(2);
    study.limits.size = 8;
    study.wait_timeout = seconds(3);
    for (int i = 0; i < 400; ++i) study.past.push_back({kNow + milliseconds(100 * (i / 4)), {}, milliseconds(20)});
  }
  PoolInfo info;
  PoolAnalysis study;
};

TEST_F(APoolAnalysis, AdvisesWithItsMethodAndInSentences) {
  const ParsedJson json = parsed(advice_response(info, study, "/x"));
  EXPECT_NE(json.at("method").get<std::string>().find("replayed"), std::string::npos);
  const ParsedJson& advice = json.at("advice");
  EXPECT_NEAR(advice.at("arrivals_per_second").get<double>(), 40, 1);
  EXPECT_NEAR(advice.at("hold_seconds").at("mean").get<double>(), 0.02, 1e-6);
  EXPECT_GE(advice.at("recommended").at("size").get<int>(), 4) << "four come at once";
  EXPECT_EQ(advice.at("current").at("size"), 8);
  EXPECT_GE(advice.at("explanation").size(), 3U);
}

TEST_F(APoolAnalysis, AdvisesForTheStatedWait) {
  const ParsedJson strict = parsed(advice_response(info, study, "/x?wait=5ms")).at("advice");
  EXPECT_EQ(strict.at("target_seconds"), 0.005);
  EXPECT_EQ(strict.at("recommended").at("size"), 4);
  EXPECT_EQ(strict.at("recommended").at("range"), ParsedJson({{"min", 4}, {"max", 4}}));
  EXPECT_EQ(parsed(advice_response(info, study, "/x?wait=70ms")).at("advice").at("recommended").at("size"), 1);
}

TEST_F(APoolAnalysis, RefusesAWaitThatIsNone) {
  for (const char* query : {"wait=0s", "wait=5", "wait=", "wait=soon"}) {
    EXPECT_EQ(advice_response(info, study, std::string("/x?") + query).status, 400) << query;
  }
}

TEST_F(APoolAnalysis, IsSentUnderTheNamesOfBeforeToo) {
  const ParsedJson replay = parsed(what_if_response(info, study, "/x?size=1"));
  EXPECT_EQ(replay.at("present"), replay.at("current"));
  EXPECT_EQ(replay.at("what_if"), replay.at("simulated"));
  EXPECT_EQ(replay.at("sentences"), replay.at("explanation"));
  const ParsedJson advice = parsed(advice_response(info, study, "/x")).at("advice");
  EXPECT_EQ(advice.at("present"), advice.at("current"));
  EXPECT_EQ(advice.at("busy").at("most"), advice.at("busy").at("max"));
}

TEST_F(APoolAnalysis, SaysWhyItCannotAdvise) {
  study.past.resize(3);
  const ParsedJson json = parsed(advice_response(info, study, "/x"));
  EXPECT_TRUE(json.at("advice").is_null());
  EXPECT_EQ(json.at("reason"), "only 3 borrows so far, 20 are needed");
}

TEST_F(APoolAnalysis, ReplaysThePresentSettingsBesideTheOthers) {
  const ParsedJson json = parsed(what_if_response(info, study, "/x?size=1"));
  EXPECT_EQ(json.at("borrows"), 400);
  EXPECT_EQ(json.at("current").at("outcome").at("peak"), 4);
  EXPECT_EQ(json.at("simulated").at("outcome").at("peak"), 1);
  EXPECT_EQ(json.at("handshakes_saved"), 3);
  EXPECT_NEAR(json.at("simulated").at("outcome").at("wait_seconds").at("longest").get<double>(), 0.062, 1e-6)
      << "the fourth waits for three and a dial";
  EXPECT_EQ(json.at("explanation").at(0), "1 connection instead of 4: 3 handshakes saved.");
}

TEST_F(APoolAnalysis, SaysWhenOtherSettingsOpenNoOtherNumberOfConnections) {
  const ParsedJson json = parsed(what_if_response(info, study, "/x"));
  EXPECT_EQ(json.at("explanation").at(0), "4 connections and as many handshakes as with the current settings.");
}

TEST_F(APoolAnalysis, RefusesSettingsThatAreNone) {
  for (const char* query : {"size=0", "size=x", "size=-1", "size=1000000", "max_usage=9999999", "size=2&min_idle=3",
                            "idle_timeout=5", "wait_timeout=soon"}) {
    const Response response = what_if_response(info, study, std::string("/x?") + query);
    EXPECT_EQ(response.status, 400) << query;
  }
  EXPECT_EQ(what_if_response(info, study, "/x?idle_timeout=5s&max_waiting=0&expire_time=1m").status, 200);
}

TEST_F(APoolAnalysis, ExplainsInSentences) {
  EXPECT_EQ(parsed(explain_response(info, study)).at("explanation").at(0),
            "No connection has been opened yet, because there was no request.");
}

TEST_F(APoolAnalysis, ExplainsWhatBecameOfConnects) {
  study.intercepts = {{"intercepted", 12}, {"distrusted", 1}, {"early", 3}};
  const ParsedJson lines = parsed(explain_response(info, study)).at("explanation");
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines.at(1), "Since carpool started, with earlier pools of this origin:");
  EXPECT_EQ(lines.at(2), "12 CONNECTs ended here, and the requests inside used this pool (result intercepted).");
  EXPECT_EQ(lines.at(3), "1 CONNECT became a tunnel (result distrusted).");
  EXPECT_EQ(lines.at(4), "3 CONNECTs became tunnels (result early).");
}

}  // namespace
}  // namespace carpool::proxy::admin
