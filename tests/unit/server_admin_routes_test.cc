// Unit tests of the admin routes, called as functions: the content and form of each, and its methods.
#include "proxy/server/admin/routes.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "proxy/server/admin/access_rules.h"
#include "proxy/server/admin/event_feed.h"
#include "proxy/server/admin/path.h"
#include "proxy/server/admin/route.h"
#include "tests/unit/server_admin_support.h"

namespace carpool::proxy::admin {
namespace {

using ParsedJson = nlohmann::json;

class Routes : public testing::Test {
 protected:
  Response ask(std::string_view target, std::string_view method = "GET", std::string_view body = {}) {
    AdminRequest request;
    request.method = method;
    request.target = target;
    request.host = "localhost";
    request.body = body;
    return whole(handle(request, {}, view, control));
  }
  ParsedJson json(std::string_view target) {
    const Response response = ask(target);
    EXPECT_EQ(response.status, 200) << target << ' ' << response.body;
    EXPECT_EQ(response.content_type, "application/json");
    return ParsedJson::parse(response.body);
  }
  FakeView view;
  FakeControl control;
};

TEST_F(Routes, TellsOfEveryPool) {
  const ParsedJson pools = json("/pools").at("pools");
  ASSERT_EQ(pools.size(), 2U);
  const ParsedJson& pool = pools[0];
  EXPECT_EQ(pool.at("origin"), "http://a.example");
  EXPECT_EQ(pool.at("active"), 3);
  EXPECT_EQ(pool.at("borrowable"), 2);
  EXPECT_EQ(pool.at("borrowed"), 1);
  EXPECT_EQ(pool.at("connecting"), 1);
  EXPECT_EQ(pool.at("waiting"), 2);
  EXPECT_EQ(pool.at("max_wait_seconds"), 0.25);
  EXPECT_EQ(pool.at("size"), 64);
  EXPECT_EQ(pool.at("peak"), 4);
  EXPECT_EQ(pool.at("opened").at("all_busy"), 5);
  EXPECT_EQ(pool.at("closed").at("private"), 0);
  EXPECT_TRUE(pool.at("learned_idle_timeout_seconds").is_null());
}

TEST_F(Routes, FindsAPoolByItsUriInEverySpelling) {
  for (const char* target :
       {"/pools/http%3A%2F%2Fa.example", "/pools/http%3A%2F%2Fa.example/", "/pools/http%3a%2f%2fa.example%2f",
        "/pools/http%3A%2F%2FA.EXAMPLE%3A80", "/pools/http:%2F%2Fa.example?x=1"}) {
    EXPECT_EQ(json(target).at("origin"), "http://a.example") << target;
  }
  EXPECT_EQ(ask("/pools/http%3A%2F%2Fc.example").status, 404);
  EXPECT_EQ(ask("/pools/nonsense").status, 400);
  EXPECT_EQ(ask("/pools/%zz").status, 400);
  EXPECT_EQ(ask("/pools/http%3A%2F%2Fa.example/nonsense").status, 404);
  EXPECT_EQ(ask("/pools/http%3A%2F%2Fa.example/connections/x").status, 404);
}

TEST_F(Routes, TellsOfEveryConnection) {
  const ParsedJson one = json("/pools/http%3A%2F%2Fa.example/connections").at("connections").at(0);
  EXPECT_EQ(one.at("id"), 42);
  EXPECT_EQ(one.at("state"), "borrowed");
  EXPECT_EQ(one.at("age_seconds"), 1.5);
  EXPECT_EQ(one.at("uses"), 9);
  EXPECT_EQ(one.at("protocol"), "h1");
  EXPECT_EQ(one.at("peer"), "10.0.0.1:80");
  EXPECT_EQ(one.at("borrower"), "GET /x of 127.0.0.1:5000 to http://a.example");
  for (const char* plain : {"tls_version", "cipher", "local"}) EXPECT_TRUE(one.at(plain).is_null()) << plain;
}

TEST_F(Routes, KeepsTheGoldenFormOfPoolMetrics) {
  const ParsedJson all = json("/pool/metrics");
  EXPECT_EQ(
      all.at("http://a.example"),
      ParsedJson({{"active", 3}, {"borrows", 100}, {"restores", 99}, {"created", 4}, {"closed", 1}, {"failures", 1}}));
}

TEST_F(Routes, ShowsThePoolInForceAndSumsUpThoseThatReloadsReplaced) {
  PoolInfo earlier = view.list.front();
  earlier.replaced = true;
  earlier.snapshot.size = 7;
  view.list.push_back(earlier);
  EXPECT_EQ(json("/pools/http%3A%2F%2Fa.example").at("size"), 64);
  EXPECT_EQ(json("/pool/metrics").at("http://a.example").at("borrows"), 200);
  view.list.erase(view.list.begin());
  EXPECT_EQ(json("/pools/http%3A%2F%2Fa.example").at("size"), 7) << "it is the only one";
}

TEST_F(Routes, ExportsMetricsAsPrometheusText) {
  const Response response = ask("/metrics");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "text/plain; version=0.0.4; charset=utf-8");
  for (const char* line :
       {"carpool_pool_connections{origin=\"http://a.example\",state=\"idle\"} 2",
        "carpool_pool_borrows_total{origin=\"other\"} 100",
        "carpool_requests_total{origin=\"http://a.example\",method=\"GET\",code=\"200\"} 1",
        "carpool_log_dropped_total 3", "carpool_build_info{version=\"0.1.0\",compiler=\"g++\",build=\"Release\"} 1",
        "carpool_pool_closed_total{origin=\"http://a.example\",cause=\"idle\"} 1"}) {
    EXPECT_NE(response.body.find(std::string(line) + "\n"), std::string::npos) << line;
  }
}

TEST_F(Routes, SaysSoWhenMetricsAreOff) {
  view.metrics_on = false;
  for (const char* target : {"/metrics", "/pool/metrics"}) {
    EXPECT_EQ(ask(target).status, 503) << target;
    EXPECT_EQ(ask(target).body.substr(0, 19), "Metrics not enabled") << target;
  }
}

TEST_F(Routes, IsLiveAlwaysAndReadyWhenNothingSpeaksAgainstIt) {
  EXPECT_EQ(ask("/readyz").status, 200);
  view.reasons = {"draining"};
  EXPECT_EQ(ask("/livez").status, 200);
  const Response response = ask("/readyz");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(ParsedJson::parse(response.body).at("reasons"), ParsedJson({"draining"}));
}

TEST_F(Routes, TellsVersionAndConfiguration) {
  EXPECT_EQ(json("/version").at("version"), "0.1.0");
  EXPECT_EQ(ParsedJson::parse(ask("/config").body), ParsedJson({{"workers", 1}}));
  EXPECT_EQ(ask("/config.toml").body, "workers = 1\n");
}

TEST_F(Routes, ShowsAPageThatLoadsNothingAndRunsOnlyWhatBearsItsNonce) {
  const auto policy_of = [](const Response& response) {
    for (const auto& [name, value] : response.headers) {
      if (name == "Content-Security-Policy") return value;
    }
    return std::string();
  };
  const Response one = ask("/"), two = ask("/");
  EXPECT_EQ(one.content_type, "text/html; charset=utf-8");
  const std::string policy = policy_of(one);
  EXPECT_TRUE(policy.starts_with("default-src 'none'; script-src 'nonce-")) << policy;
  EXPECT_NE(policy, policy_of(two)) << "a nonce serves once";
  const std::string nonce = policy.substr(policy.find("nonce-") + 6, 32);
  EXPECT_NE(one.body.find("<script nonce=\"" + nonce + "\">"), std::string::npos);
  EXPECT_EQ(one.body.find("__NONCE__"), std::string::npos);
  std::string page = one.body;
  const std::string named = "/*! https://github.com/leeoniya/uPlot (v1.6.32) */";  // the origin of the plots' library
  ASSERT_NE(page.find(named), std::string::npos);
  page.erase(page.find(named), named.size());
  for (const char* foreign : {"http://", "https://", "src=", "@import", "url(", "<link", "javascript:"}) {
    EXPECT_EQ(page.find(foreign), std::string::npos) << foreign;
  }
}

TEST_F(Routes, AnswersHeadAsGet) {
  EXPECT_EQ(ask("/pools", "HEAD").body, ask("/pools").body);
}

TEST_F(Routes, NamesTheMethodThatARouteTakes) {
  const auto allow = [](const Response& response) {
    for (const auto& [name, value] : response.headers) {
      if (name == "Allow") return value;
    }
    return std::string();
  };
  EXPECT_EQ(ask("/pools", "POST").status, 405);
  EXPECT_EQ(allow(ask("/pools", "POST")), "GET, HEAD");
  EXPECT_EQ(allow(ask("/quit")), "POST");
  EXPECT_EQ(allow(ask("/log-level", "DELETE")), "GET, HEAD, PUT");
  EXPECT_EQ(allow(ask("/pools/http%3A%2F%2Fa.example/drain")), "POST");
}

TEST_F(Routes, ToldOfThreadsSayWhatEachDoesAndWhatBoundsTheQueue) {
  view.threads_.strategy = "adaptive";
  view.threads_.queue_limit = 203;
  view.threads_.sources = {{"loops", 201, 1, 2}, {"background", 2, 0, 0}};
  view.threads_.threads = {{7, "leased", "loop 0", std::chrono::milliseconds(1500)}};
  view.threads_.background_tasks = {{"gzip", true, std::chrono::seconds(1)}};
  const ParsedJson json = ParsedJson::parse(ask("/threads").body);
  EXPECT_EQ(json["strategy"], "adaptive");
  EXPECT_EQ(json["queue"]["limit"], 203);
  EXPECT_EQ(json["queue"]["sources"][0],
            ParsedJson({{"name", "loops"}, {"limit", 201}, {"queued", 1}, {"refused", 2}}));
  EXPECT_EQ(json["threads"][0],
            ParsedJson({{"number", 7}, {"state", "leased"}, {"doing", "loop 0"}, {"seconds", 1.5}}));
  EXPECT_EQ(json["background"]["tasks"][0], ParsedJson({{"name", "gzip"}, {"running", true}, {"seconds", 1.0}}));
}

TEST_F(Routes, GiveAnOperatorsWordToThePoolAndAnswerWhenItWasGiven) {
  const std::string pool = "/pools/http%3A%2F%2Fa.example";
  for (const std::string word : {"pause", "resume", "drain", "reconnect"}) {
    Response response = ask(pool + "/" + word, "POST");
    ASSERT_TRUE(response.later) << word;
    EXPECT_EQ(response.later->poll_pending()->status, 200) << word;
  }
  EXPECT_EQ(control.commands,
            (std::vector<PoolAction>{PoolAction::pause, PoolAction::resume, PoolAction::drain, PoolAction::reconnect}));
  EXPECT_EQ(ask("/pools/http%3A%2F%2Fnobody.example/pause", "POST").status, 404);
}

TEST_F(Routes, GiveAPauseItsEnd) {
  const std::string pool = "/pools/http%3A%2F%2Fa.example";
  const Response response = *ask(pool + "/pause?for=10m", "POST").later->poll_pending();
  EXPECT_EQ(ParsedJson::parse(response.body).at("resumes_in_seconds"), 600.0);
  EXPECT_EQ(control.lasts, Duration(std::chrono::minutes(10)));
  for (const char* wrong : {"/pause?for=soon", "/drain?for=0s", "/pause?for=", "/resume?for=1m", "/reconnect?for=1m"}) {
    EXPECT_EQ(ask(pool + wrong, "POST").status, 400) << wrong;
  }
  EXPECT_EQ(control.commands.size(), 1U);
}

TEST_F(Routes, RefuseACommandWithAParameterThatTheyDoNotKnow) {
  const std::string pool = "/pools/http%3A%2F%2Fa.example";
  EXPECT_EQ(ask(pool + "/pause?fro=10m", "POST").status, 400) << "it would pause for ever";
  EXPECT_EQ(ask("/log-level?level=debug&modul=tls", "PUT").status, 400) << "it would set all modules";
  EXPECT_EQ(ask("/log-level", "PUT", R"({"level": "debug", "modul": "tls"})").status, 400);
  EXPECT_EQ(ask("/log-level", "PUT", R"({"level": "debug", "module": "tls", "x": "y"})").status, 400);
  EXPECT_EQ(ask("/reload?dryrun=1", "POST").status, 400);
  EXPECT_EQ(ask("/pools?x=1").status, 200) << "a read";
  EXPECT_TRUE(control.commands.empty());
  EXPECT_TRUE(control.levels.modules.empty());
}

TEST_F(Routes, TellsOfAPause) {
  EXPECT_EQ(json("/pools")["pools"][0]["paused"], false);
  EXPECT_TRUE(json("/pools")["pools"][0]["resumes_in_seconds"].is_null());
  view.list[0].snapshot.paused = {std::chrono::seconds(3), std::chrono::seconds(7), true};
  view.stopped = {"http://a.example"};
  const ParsedJson pool = json("/pools/http%3A%2F%2Fa.example");
  EXPECT_EQ(pool["paused"], true);
  EXPECT_EQ(pool["draining"], true);
  EXPECT_EQ(pool["paused_seconds"], 3.0);
  EXPECT_EQ(pool["resumes_in_seconds"], 7.0);
  EXPECT_EQ(json("/readyz")["paused"], ParsedJson({"http://a.example"}));
  EXPECT_NE(ask("/metrics").body.find("carpool_pool_paused{origin=\"http://a.example\"} 1\n"), std::string::npos);
  const ParsedJson explained = json("/pools/http%3A%2F%2Fa.example/explain");
  EXPECT_EQ(
      explained["explanation"][0],
      "An operator drained the origin 3.0 s ago: requests wait for a connection, and every connection closes after "
      "its use; this ends in 7.0 s.");
}

TEST_F(Routes, ShowADeclaredOriginThatNoRequestHasUsed) {
  EXPECT_EQ(json("/pools/https%3A%2F%2Fdeclared.example")["active"], 0);
  EXPECT_EQ(json("/pools/https%3A%2F%2Fdeclared.example/connections")["connections"], ParsedJson::array());
  EXPECT_TRUE(ask("/pools/https%3A%2F%2Fdeclared.example/pause", "POST").later);
  EXPECT_EQ(json("/pools").at("pools").size(), 2U);
}

TEST_F(Routes, WarmsUpAPoolThatThereNeedNotBeAndAnswersWhenThatHasEnded) {
  const auto warm_up = [&](const std::string& target) {
    Response response = ask(target, "POST");
    if (!response.later) return response;
    EXPECT_FALSE(response.later->poll_pending());
    return std::move(*response.later->poll_pending());
  };
  const std::string unknown = "/pools/http%3A%2F%2Funknown.example/warm-up";
  EXPECT_EQ(ParsedJson::parse(warm_up(unknown).body),
            ParsedJson({{"opened", 2}, {"failure", nullptr}, {"requested", 0}, {"capped_at", nullptr}, {"made", 2}}));
  EXPECT_EQ(ParsedJson::parse(warm_up(unknown + "?size=5").body).at("opened"), 5);
  const Response failed = warm_up(unknown + "?size=7");
  EXPECT_EQ(failed.status, 502);
  EXPECT_EQ(ParsedJson::parse(failed.body).at("failure"), "connection refused");
  EXPECT_EQ(ParsedJson::parse(failed.body).at("opened"), 3);
  EXPECT_EQ(warm_up("/pools/http%3A%2F%2Fdenied/warm-up").status, 403);
  for (const char* size : {"0", "x", "-1", "1e3", ""})
    EXPECT_EQ(warm_up(unknown + "?size=" + size).status, 400) << size;
  EXPECT_EQ(ask(unknown).status, 405);
}

TEST_F(Routes, NamesAFailedWarmUpWithoutBeingUnready) {
  view.cold = {"http://a.example: connection refused"};
  EXPECT_EQ(json("/readyz"),
            ParsedJson({{"status", "ready"}, {"warm_up_failed", {"http://a.example: connection refused"}}}));
}

TEST_F(Routes, StudiesOnePool) {
  const std::string pool = "/pools/http%3A%2F%2Fa.example";
  EXPECT_GE(json(pool + "/explain").at("explanation").size(), 3U);
  EXPECT_TRUE(json(pool + "/advice").at("advice").is_null());
  EXPECT_EQ(json(pool + "/what-if?size=3").at("simulated").at("settings").at("size"), 3);
  EXPECT_EQ(ask(pool + "/what-if?size=none").status, 400);
  EXPECT_EQ(ask(pool + "/what-if?sise=3").status, 400);
  EXPECT_EQ(ask(pool + "/what-if?wait_timeout=0s").status, 400) << "no pool may have this setting";
  EXPECT_EQ(ask(pool + "/what-if?idle_timeout=0s&expire_time=0s&wait_timeout=1ms").status, 200);
  EXPECT_EQ(ask(pool + "/advice?sise=3").status, 400);
  EXPECT_EQ(ask(pool + "/explain?sise=3").status, 200);
  EXPECT_EQ(ask("/pools/http%3A%2F%2Fc.example/explain").status, 404);
}

TEST_F(Routes, RejectsAParameterWithTwoValues) {
  const std::string pool = "/pools/http%3A%2F%2Fa.example";
  EXPECT_EQ(ParsedJson::parse(ask(pool + "/what-if?size=3&size=4").body).at("error"),
            "parameter given more than once: `size`");
  for (const std::string& target :
       {pool + "/what-if?size=3&size=3", pool + "/advice?wait=1s&wait=2s", pool + "/what-if?=3", pool + "/advice?size",
        std::string("/history?origin=http%3A%2F%2Fa.example&origin=http%3A%2F%2Fb.example")}) {
    EXPECT_EQ(ask(target).status, 400) << target;
  }
  for (const char* const query : {"?", "?&&size=3&", "?=&size=3", "?size=3#size=4"}) {
    EXPECT_EQ(ask(pool + "/what-if" + query).status, 200) << query;
  }
  EXPECT_EQ(ask("/log-level?level=info&level=debug", "PUT").status, 400);
}

TEST_F(Routes, ShowsHowOldAndHowUsedTheConnectionsAre) {
  const ParsedJson bars = json("/pools/http%3A%2F%2Fa.example").at("histograms");
  const auto bar = [&](const char* name, const ParsedJson& up_to) {
    for (const ParsedJson& one : bars.at(name)) {
      if (one.at("up_to") == up_to) return one.at("count").get<int>();
    }
    return -1;
  };
  EXPECT_EQ(bar("age_seconds", 5), 1) << "one and a half seconds";
  EXPECT_EQ(bar("age_seconds", 1), 0);
  EXPECT_EQ(bar("uses", 10), 1);
  EXPECT_EQ(bar("idle_seconds", 0.1), 0) << "it does not rest";
  EXPECT_EQ(bar("idle_seconds", nullptr), 0);
}

TEST_F(Routes, TellsOfLeaks) {
  EXPECT_EQ(json("/leaks"), ParsedJson({{"leaks", ParsedJson::array()}}));
  view.lost.resize(2);
  EXPECT_EQ(json("/leaks").at("leaks").size(), 2U);
}

TEST_F(Routes, SetsTheLogsLevelFromTheQueryOrAJsonBody) {
  EXPECT_EQ(ParsedJson::parse(ask("/log-level?level=debug", "PUT").body),
            ParsedJson({{"level", "debug"}, {"modules", ParsedJson::object()}}));
  EXPECT_EQ(ParsedJson::parse(ask("/log-level", "PUT", R"({"level": "warn", "module": "tls"})").body),
            ParsedJson({{"level", "debug"}, {"modules", {{"tls", "warn"}}}}));
  EXPECT_EQ(json("/log-level").at("level"), "debug");
  EXPECT_EQ(ask("/log-level?level=loud", "PUT").status, 400);
  for (const char* body : {"", "{", "[]", "7", R"({"level": 7})", R"({"module": "tls"})"}) {
    EXPECT_EQ(ask("/log-level", "PUT", body).status, 400) << body;
  }
}

// If it were ignored, such a dry_run would perform the reload.
TEST_F(Routes, RefusesAQueryThatIsNotWellEncodedInsteadOfOverlookingIt) {
  for (const char* target : {"/reload?dry_run=1%00", "/reload?dry_run=%zz", "/reload?dry_run=%1"}) {
    EXPECT_EQ(ask(target, "POST").status, 400) << target;
  }
  EXPECT_EQ(ask("/log-level?level=%zz", "PUT", R"({"level": "debug"})").status, 400);
  EXPECT_EQ(ask("/log-level?level=&module=", "PUT", R"({"level": "debug"})").status, 400);
  EXPECT_EQ(ask("/pools/http%3A%2F%2Fa.example/warm-up?size=%", "POST").status, 400);
  EXPECT_EQ(ask("/pools?what=%E2%82%AC").status, 200);
}

TEST_F(Routes, TellsWhatAReloadChangedAndWhyItWasRefused) {
  using Outcome = ReloadReport::Outcome;
  control.report = {
      Outcome::applied, {{"pool.size", "64", "8", true}, {"workers", "1", "2", false}}, {"ca.pem"}, {}, {}};
  const ParsedJson told = ParsedJson::parse(ask("/reload", "POST").later->poll_pending()->body);
  EXPECT_EQ(told.at("status"), "reloaded");
  EXPECT_EQ(told.at("changes").at(0),
            ParsedJson({{"key", "pool.size"}, {"from", "64"}, {"to", "8"}, {"applies", "now"}}));
  EXPECT_EQ(told.at("changes").at(1).at("applies"), "restart");
  EXPECT_EQ(control.dry_runs, 0);
  ask("/reload?dry_run=1", "POST");
  EXPECT_EQ(control.dry_runs, 1);
  EXPECT_EQ(ask("/reload?dry_run=maybe", "POST").status, 400);
  control.report = {Outcome::refused, {}, {}, {"c.toml:1:1: x: wrong"}, {}};
  const Response refused = *ask("/reload", "POST").later->poll_pending();
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(ParsedJson::parse(refused.body).at("mistakes"), ParsedJson({"c.toml:1:1: x: wrong"}));
  control.report = {Outcome::busy, {}, {}, {"carpool is draining"}, {}};
  EXPECT_EQ(ask("/reload", "POST").later->poll_pending()->status, 409);
}

TEST_F(Routes, QuitsOnceHoweverOftenItIsAsked) {
  EXPECT_EQ(ask("/quit", "POST").status, 202);
  EXPECT_EQ(ParsedJson::parse(ask("/quit", "POST").body).at("status"), "draining already");
  EXPECT_EQ(ask("/quit").status, 405);
}

TEST_F(Routes, DescribesEveryRouteForMachines) {
  const ParsedJson document = json("/openapi.json");
  const ParsedJson& schemas = document.at("components").at("schemas");
  std::size_t operations = 0;
  for (const auto& [path, methods] : document.at("paths").items()) {
    for (const auto& [method, operation] : methods.items()) {
      ++operations;
      const ParsedJson& responses = operation.at("responses");
      const ParsedJson& content = responses.at(responses.contains("200") ? "200" : "202").at("content");
      const ParsedJson& schema = content.begin()->at("schema");
      if (schema.contains("$ref")) {
        const std::string name =
            schema.at("$ref").get<std::string>().substr(std::string("#/components/schemas/").size());
        EXPECT_TRUE(schemas.contains(name)) << path << ' ' << name;
      }
    }
  }
  EXPECT_EQ(operations, routes().size() + pool_routes().size());
}

TEST_F(Routes, TellsListenersOfEverythingAndThenOnlyOfWhatChanged) {
  EXPECT_TRUE(ask("/events").stream);
  EventFeed feed;
  feed.update(view);
  const auto data = [](const std::string& text) { return ParsedJson::parse(text.substr(text.find("data: ") + 6)); };
  EXPECT_TRUE(feed.event().whole->starts_with("event: state\n"));
  EXPECT_EQ(data(*feed.event().whole).at("pools").size(), 2U);
  view.list[1].snapshot.borrows = 500;
  feed.update(view);
  EXPECT_EQ(data(*feed.event().whole).at("pools").size(), 2U);
  const ParsedJson change = data(*feed.event().changes);
  std::vector<std::string> told;
  for (const ParsedJson& pool : change.at("pools")) told.push_back(pool.at("origin"));
  EXPECT_NE(std::find(told.begin(), told.end(), view.list[1].origin), told.end());
  view.list.pop_back();
  feed.update(view);
  EXPECT_EQ(data(*feed.event().changes).at("gone"), ParsedJson({"https://<b>.example:8443"}));
}

TEST_F(Routes, KnowsNothingElse) {
  for (const char* target :
       {"/nonsense", "/pools/http%3A%2F%2Fa.example/x/y", "*", "", "/metrics/x", "http://localhost/pools"}) {
    const Response response = ask(target);
    EXPECT_GE(response.status, 400) << target;
    EXPECT_TRUE(ParsedJson::parse(response.body).contains("error")) << target;
  }
}

TEST_F(Routes, ForbidsBrowsersToKeepOrGuess) {
  const Response response = ask("/config");
  EXPECT_EQ(response.headers[0], std::make_pair(std::string("Cache-Control"), std::string("no-store")));
  EXPECT_EQ(response.headers[1], std::make_pair(std::string("X-Content-Type-Options"), std::string("nosniff")));
}

TEST_F(Routes, GuardsBeforeItAnswers) {
  AdminRequest request;
  request.target = "/pools";
  request.host = "evil.example";
  EXPECT_EQ(handle(request, {}, view, control).status, 403);
}

TEST(Path, DividesBeforeItDecodes) {
  EXPECT_EQ(segments_of("/a%2Fb/c"), (std::vector<std::string>{"a/b", "c"}));
  EXPECT_EQ(segments_of("/"), std::vector<std::string>{});
  EXPECT_FALSE(segments_of("/%0").has_value());
  EXPECT_FALSE(segments_of("/%+1").has_value());
  EXPECT_FALSE(segments_of("/%00").has_value());
  EXPECT_FALSE(segments_of("a").has_value());
}

}  // namespace
}  // namespace carpool::proxy::admin
