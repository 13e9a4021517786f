// Unit tests of the /metrics text: its grammar line by line, its names against the catalog, its sums.
#include "metrics/prometheus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace carpool::metrics {
namespace {

Sample everything() {
  Sample sample;
  OriginSample a;
  a.label = "http://a.example";
  a.borrows = 10;
  a.restores = 9;
  a.opened = {{"first", 1}, {"all_busy", 2}, {"replay", 0}};
  a.closed = {{"idle", 1}};
  a.failures = {{"dns", 0}, {"refused", 0}};
  a.connections = {{"connecting", 0}, {"idle", 1}, {"borrowed", 1}};
  a.peak = 3;
  a.size = 64;
  sample.origins = {a};
  ExecSample exec;
  exec.tasks = {{"pc", 5}, {"epc", 1}};
  exec.handovers = {{"took_over", 1}};
  exec.handovers_paused = 2;
  exec.threads = {{"idle", 2}};
  exec.queue_wait.buckets[1] = 4;
  sample.exec = exec;
  sample.process = read_process();
  sample.build = {"0.1.0", "g++ \"12\"\n\\", "Release"};
  return sample;
}

std::string page_of(const Registry& registry, const Sample& sample) {
  return exposition(registry, sample);
}

// Two requests, one of them over a new connection.
void serve(Registry& registry, const std::string& origin, int times = 1) {
  if (times > 1) serve(registry, origin, times - 1);
  const OriginSlot slot = registry.add_origin(origin);
  registry.record_request(0, slot, {"GET", 200, std::chrono::microseconds(700), std::chrono::microseconds(1)});
  registry.record_request(0, slot, {"PUT", 0, std::chrono::seconds(90), {}});
  registry.record(0, slot, RetryReason::not_sent);
  registry.record_handshake(0, slot, std::chrono::milliseconds(1));
}

// name{labels} -> value, as a scraper parses it.
std::map<std::string, double> samples_of(const std::string& page) {
  std::map<std::string, double> samples;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t gap = line.rfind(' ');
    if (line[0] == '#') continue;
    EXPECT_TRUE(samples.emplace(line.substr(0, gap), std::stod(line.substr(gap + 1))).second) << line;
  }
  return samples;
}

TEST(Exposition, IsWellFormedLineByLine) {
  Registry registry(1, 10);
  serve(registry, "http://a.example");
  const std::string page = page_of(registry, everything());
  const std::regex comment(R"(# (HELP [a-z0-9_]+ \S.*|TYPE [a-z0-9_]+ (counter|gauge|histogram)))");
  const std::regex sample(
      R"re([a-z0-9_]+(\{[a-z_]+="([^"\\]|\\["\\n])*"(,[a-z_]+="([^"\\]|\\["\\n])*")*\})? (\+Inf|-?[0-9.]+(e[-+]?[0-9]+)?))re");
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(std::regex_match(line, line[0] == '#' ? comment : sample)) << line;
  }
  EXPECT_EQ(page.back(), '\n');
}

TEST(Exposition, SaysHelpAndTypeOncePerFamilyBeforeItsSamples) {
  Registry registry(1, 10);
  serve(registry, "http://a.example");
  std::set<std::string> seen;
  std::string family;
  std::istringstream lines(page_of(registry, everything()));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string mark, kind, name;
    words >> mark >> kind >> name;
    if (kind == "HELP") {
      EXPECT_TRUE(seen.insert(name).second) << name;
    }
    if (mark == "#") {
      family = name;
    } else {
      EXPECT_EQ(line.rfind(family, 0), 0U) << line;
    }
  }
}

TEST(Exposition, EscapesBytesThatALabelMustNotContain) {
  Registry registry(1, 10);
  const std::string page = page_of(registry, everything());
  EXPECT_NE(page.find(R"(compiler="g++ \"12\"\n\\")"), std::string::npos) << page;
}

TEST(Exposition, CumulatesBucketsUpToInfinityWhichIsTheCount) {
  Registry registry(1, 10);
  serve(registry, "a", 5);
  const auto samples = samples_of(page_of(registry, {}));
  EXPECT_EQ(samples.at(R"(carpool_request_seconds_bucket{origin="a",le="0.0005"})"), 0);
  EXPECT_EQ(samples.at(R"(carpool_request_seconds_bucket{origin="a",le="0.001"})"), 5);
  EXPECT_EQ(samples.at(R"(carpool_request_seconds_bucket{origin="a",le="60"})"), 5);
  EXPECT_EQ(samples.at(R"(carpool_request_seconds_bucket{origin="a",le="+Inf"})"), 10);
  EXPECT_EQ(samples.at(R"(carpool_request_seconds_count{origin="a"})"), 10);
  EXPECT_DOUBLE_EQ(samples.at(R"(carpool_request_seconds_sum{origin="a"})"), 450.0035);
}

TEST(Exposition, NamesRequestsByMethodAndCodeAndRetriesByProof) {
  Registry registry(1, 10);
  serve(registry, "a");
  const auto samples = samples_of(page_of(registry, {}));
  EXPECT_EQ(samples.at(R"(carpool_requests_total{origin="a",method="GET",code="200"})"), 1);
  EXPECT_EQ(samples.at(R"(carpool_requests_total{origin="a",method="PUT",code="none"})"), 1);
  EXPECT_EQ(samples.at(R"(carpool_retries_total{origin="a",proof="not_sent"})"), 1);
  EXPECT_EQ(samples.count(R"(carpool_retries_total{origin="a",proof="goaway"})"), 0U) << "there was none";
}

TEST(Exposition, SendsTheBucketsOfAnOriginsHistogramFromItsTenthValueOn) {
  Registry registry(2, 10);
  serve(registry, "a", 4);
  const OriginSlot slot = registry.add_origin("a");
  registry.record_request(1, slot, {"GET", 200, std::chrono::seconds(1), {}});
  serve(registry, "b", 5);
  auto samples = samples_of(page_of(registry, {}));
  EXPECT_EQ(samples.at(R"(carpool_request_seconds_count{origin="a"})"), 9);
  EXPECT_EQ(samples.at(R"(carpool_request_seconds_bucket{origin="a",le="+Inf"})"), 9);
  EXPECT_EQ(samples.count(R"(carpool_request_seconds_bucket{origin="a",le="1"})"), 0U);
  EXPECT_EQ(samples.at(R"(carpool_request_seconds_count{origin="b"})"), 10) << "of another it is there";
  registry.record_request(1, slot, {"GET", 200, std::chrono::seconds(1), {}});
  samples = samples_of(page_of(registry, {}));
  EXPECT_EQ(samples.at(R"(carpool_request_seconds_count{origin="a"})"), 10) << "those of both loops";
  EXPECT_EQ(samples.at(R"(carpool_request_seconds_bucket{origin="a",le="1"})"), 6);
}

TEST(Exposition, SendsOfZeroCountersOnlyThoseThatRulesNeed) {
  Registry registry(1, 10);
  registry.add_origin("http://a.example");
  const auto samples = samples_of(page_of(registry, everything()));
  EXPECT_EQ(samples.count(R"(carpool_pool_failures_total{origin="http://a.example",reason="dns"})"), 0U);
  EXPECT_EQ(samples.count(R"(carpool_pool_connections{origin="http://a.example",state="connecting"})"), 0U);
  EXPECT_EQ(samples.count(R"(carpool_pool_paused{origin="http://a.example"})"), 0U);
  Sample rest = everything();
  for (Labelled& state : rest.origins.front().connections) state.value = 0;
  const auto idle = samples_of(page_of(registry, rest));
  EXPECT_EQ(idle.at(R"(carpool_pool_connections{origin="http://a.example",state="borrowed"})"), 0);
  EXPECT_EQ(idle.at(R"(carpool_pool_connections{origin="http://a.example",state="idle"})"), 0);
  EXPECT_EQ(idle.at(R"(carpool_pool_leaks_total{origin="http://a.example"})"), 0);
}

TEST(Exposition, HasTheAgesOfTheConnectionsThatExistOnceThereWereSeveral) {
  const Registry registry(1, 10);
  Sample sample = everything();
  OriginSample& origin = sample.origins.front();
  const std::string age = R"(carpool_pool_connection_age_seconds_)", a = R"(origin="other")";
  const auto of = [&] { return samples_of(page_of(registry, sample)); };
  origin.ages.counts = {1, 0, 2, 0, 0, 0, 0, 0, 1};
  origin.ages.nanoseconds = 7'300'000'000'000;
  origin.peak = kMinConnections - 1;
  EXPECT_EQ(of().count(age + "count{" + a + "}"), 0U);
  origin.peak = kMinConnections;
  EXPECT_EQ(of().at(age + "count{" + a + "}"), 4);
  EXPECT_EQ(of().at(age + "sum{" + a + "}"), 7300);
  EXPECT_EQ(of().count(age + "bucket{" + a + R"(,le="5"})"), 0U) << "few connections show no distribution";
  origin.peak = kMinValues;
  EXPECT_EQ(of().at(age + "bucket{" + a + R"(,le="0.1"})"), 1);
  EXPECT_EQ(of().at(age + "bucket{" + a + R"(,le="5"})"), 3);
  EXPECT_EQ(of().at(age + "bucket{" + a + R"(,le="7200"})"), 3);
  EXPECT_EQ(of().at(age + "bucket{" + a + R"(,le="+Inf"})"), 4);
  EXPECT_EQ(of().count("carpool_pool_connection_idle_seconds_count{" + a + "}"), 0U) << "none is idle";
  sample.origins.push_back(origin);
  sample.origins.back().peak = kMinConnections;
  EXPECT_EQ(of().at(age + "bucket{" + a + R"(,le="5"})"), 6) << "of all origins without a label";
}

TEST(Exposition, TellsWhatIsInFlightAndHowLongTheFirstHasWaited) {
  const Registry registry(1, 10);
  Sample sample = everything();
  sample.origins.push_back(sample.origins.front());
  sample.origins[0].waiting = sample.origins[1].waiting = 1;
  sample.origins[0].longest_wait_nanoseconds = 1'500'000'000;
  sample.origins[1].longest_wait_nanoseconds = 250'000'000;
  const auto samples = samples_of(page_of(registry, sample));
  EXPECT_EQ(samples.at(R"(carpool_pool_leases{origin="other"})"), 2);
  EXPECT_EQ(samples.at(R"(carpool_pool_longest_wait_seconds{origin="other"})"), 1.5) << "the longest, not their sum";
  for (OriginSample& origin : sample.origins) origin.waiting = 0, origin.restores = origin.borrows;
  const auto still = samples_of(page_of(registry, sample));
  EXPECT_EQ(still.count(R"(carpool_pool_leases{origin="other"})"), 0U);
  EXPECT_EQ(still.count(R"(carpool_pool_longest_wait_seconds{origin="other"})"), 0U);
}

TEST(Exposition, KeepsTheLedgerOfASampleBalanced) {
  Registry registry(1, 10);
  registry.add_origin("http://a.example");
  double opened = 0, closed = 0, there = 0;
  for (const auto& [name, value] : samples_of(page_of(registry, everything()))) {
    if (name.rfind("carpool_pool_opened_total", 0) == 0) opened += value;
    if (name.rfind("carpool_pool_closed_total", 0) == 0) closed += value;
    if (name.rfind("carpool_pool_connections{", 0) == 0) there += value;
  }
  EXPECT_EQ(opened, 3);
  EXPECT_EQ(opened - closed, there);
}

TEST(Exposition, AddsUpOriginsBeyondTheCapAsOther) {
  Registry registry(1, 1);
  registry.add_origin("a");
  Sample sample;
  for (const char* label : {"a", "b", "c"}) {
    OriginSample& origin = sample.origins.emplace_back();
    origin.label = label;
    origin.borrows = 5;
    origin.opened = {{"first", 1}};
  }
  const auto samples = samples_of(page_of(registry, sample));
  EXPECT_EQ(samples.at(R"(carpool_pool_borrows_total{origin="a"})"), 5);
  EXPECT_EQ(samples.at(R"(carpool_pool_borrows_total{origin="other"})"), 10);
  EXPECT_EQ(samples.at(R"(carpool_pool_opened_total{origin="other",cause="first"})"), 2);
}

TEST(Exposition, AddsUpTheRefusalsAtInterceptedOriginsBeyondTheCapAsOther) {
  Registry registry(1, 1);
  registry.add_origin("https://a");
  Sample sample;
  sample.intercept.emplace();
  for (const char* label : {"https://a", "https://b", "https://c"}) {
    sample.intercept->refusals.push_back({label, "tls13_h1", "unknown_ca", 2});
  }
  const auto samples = samples_of(page_of(registry, sample));
  const auto of = [&](const std::string& label) {
    const auto found = samples.find(R"(carpool_intercept_refusals_total{origin=")" + label +
                                    R"(",offer="tls13_h1",alert="unknown_ca"})");
    return found == samples.end() ? 0 : found->second;
  };
  EXPECT_EQ(of("https://a"), 2);
  EXPECT_EQ(of("https://b"), 0);
  EXPECT_EQ(of("other"), 4);
}

TEST(Exposition, ComesInPartsThatAreTheWholeTogetherAndSayEachHeadingOnce) {
  Registry registry(2, 500);
  Sample sample = everything();
  for (int i = 0; i < 400; ++i) {
    OriginSample origin = sample.origins.front();
    origin.label = "http://origin-" + std::to_string(i) + ".example";
    serve(registry, origin.label, 5);
    sample.origins.push_back(origin);
  }
  std::string whole;
  std::size_t longest = 0, before = 0;
  for (Exposition text(registry, sample); text.next(whole); before = whole.size()) {
    EXPECT_EQ(whole.back(), '\n');
    longest = std::max(longest, whole.size() - before);
  }
  EXPECT_LT(longest, 32U * 1024);
  EXPECT_GT(whole.size(), 20 * longest);
  EXPECT_EQ(whole, page_of(registry, sample));
  std::set<std::string> seen;
  std::istringstream lines(whole);
  for (std::string line; std::getline(lines, line);) {
    if (line[0] != '#') continue;
    EXPECT_TRUE(seen.insert(line).second) << line;
  }
  const auto samples = samples_of(whole);
  EXPECT_EQ(samples.at(R"(carpool_pool_borrows_total{origin="http://origin-399.example"})"), 10);
  EXPECT_EQ(samples.at(R"(carpool_request_seconds_count{origin="http://origin-0.example"})"), 10);
}

TEST(Exposition, LeavesOutFamiliesWithoutData) {
  Registry registry(1, 1);
  const std::string page = page_of(registry, {});
  EXPECT_EQ(page.find("carpool_exec"), std::string::npos);
  EXPECT_EQ(page.find("carpool_requests_total"), std::string::npos);
  EXPECT_NE(page.find("carpool_downstream_connections 0"), std::string::npos);
}

TEST(Exposition, HasTheFamiliesOfTheProcess) {
  Registry registry(1, 1);
  const auto samples = samples_of(page_of(registry, everything()));
  EXPECT_GT(samples.at("process_resident_memory_bytes"), 1e6);
  EXPECT_GE(samples.at("process_open_fds"), 3);
  EXPECT_GE(samples.at("process_max_fds"), samples.at("process_open_fds"));
  EXPECT_GT(samples.at("process_start_time_seconds"), 1.6e9);
  EXPECT_GE(samples.at("process_cpu_seconds_total"), 0);
  EXPECT_GT(samples.at("process_virtual_memory_bytes"), samples.at("process_resident_memory_bytes"));
}

}  // namespace
}  // namespace carpool::metrics
