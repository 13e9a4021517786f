// Unit tests of the metric catalog: names follow Prometheus' rules, each occurs once, and the generated document is up
// to date. CARPOOL_UPDATE_DOCS=1 writes docs/metrics.md instead of comparing it.
#include "metrics/catalog.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "metrics/histogram.h"
#include "metrics/origin_shard.h"
#include "pool/policy/cause.h"

namespace carpool::metrics {
namespace {

TEST(Catalog, NamesEachMetricOnceByTheRules) {
  std::set<std::string_view> names;
  for (const auto& [metric, source] : catalog()) {
    const std::string_view name = metric.name;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_TRUE(name.rfind("carpool_", 0) == 0 || name.rfind("process_", 0) == 0) << name;
    EXPECT_EQ(metric.type == Type::counter, name.ends_with("_total")) << name;
    EXPECT_EQ(metric.type >= Type::histogram && !name.ends_with("_seconds"), false) << name;
    EXPECT_EQ(metric.help.find_first_of("\n\\"), std::string_view::npos) << name;
    EXPECT_EQ(metric.help.back(), '.') << name;
  }
}

TEST(Catalog, HoldsEveryNameThatIsPromised) {
  std::set<std::string> there;
  for (const auto& [metric, source] : catalog())
    there.insert(std::string(metric.name) + "{" + std::string(metric.labels) + "}");
  for (const char* promised : {"pool_borrows_total{origin}",
                               "pool_restores_total{origin}",
                               "pool_opened_total{origin,cause}",
                               "pool_closed_total{origin,cause}",
                               "pool_failures_total{origin,reason}",
                               "pool_connections{origin,state}",
                               "pool_connections_peak{origin}",
                               "pool_size{origin}",
                               "pool_waiting{origin}",
                               "pool_longest_wait_seconds{origin}",
                               "pool_leases{origin}",
                               "pool_connection_age_seconds{origin}",
                               "pool_connection_idle_seconds{origin}",
                               "pool_wait_seconds{origin}",
                               "pool_leaks_total{origin}",
                               "requests_total{origin,method,code}",
                               "request_seconds{origin}",
                               "retries_total{origin,proof}",
                               "downstream_connections{}",
                               "upstream_handshake_seconds{origin}",
                               "exec_tasks_total{mode}",
                               "exec_handovers_total{result}",
                               "exec_threads{state}",
                               "exec_threads_max{}",
                               "exec_low_on_threads{}",
                               "exec_queue{}",
                               "exec_queue_wait_seconds{}",
                               "loop_turn_seconds{}",
                               "loop_delay_seconds{}",
                               "loop_busy_seconds_total{loop}"}) {
    EXPECT_TRUE(there.count(std::string("carpool_") + promised)) << promised;
  }
}

std::string_view name_of(Type type) {
  return type == Type::counter ? "counter" : type == Type::gauge ? "gauge" : "histogram";  // distributions, too
}

std::string document() {
  std::ostringstream out;
  out << "# Metrics\n\n"
         "`GET /metrics` on the admin address returns the Prometheus text format 0.0.4. `metrics/catalog.cc` declares "
         "every\n"
         "metric once; this page is generated from it (`CARPOOL_UPDATE_DOCS=1 metrics_tests`).\n\n"
         "- Names and units follow Prometheus: base units, `_total` on counters. A family without data is omitted.\n"
         "- `origin` is `scheme://host[:port]`. The first `metrics.max_origins` origins keep their label for the life "
         "of\n"
         "  the process, and so does every [[origin]] (at most `max_origins` of them); all others are summed up as\n"
         "  `other`. One with a pool in that sum stays there when a reload lists it, because no counter falls. "
         "Requests\n"
         "  that were refused before they had an origin have `none`.\n"
         "- `method` is one of nine methods or `other`; `code` is 100 to 599 or `other`; 499 if the client left\n"
         "  before the response head.\n"
         "- An origin exports zeros of these series only: borrows, restores, leaks, peak, size, waiting, idle and "
         "borrowed\n"
         "  connections, and usable addresses. Each other counter begins with its first event, and each other gauge "
         "is\n"
         "  exported while it is not zero: absent means 0. Therefore an origin that was used once has fewer than 25\n"
         "  series. At every scrape opened - closed is the sum of `carpool_pool_connections`, and borrows - restores "
         "is\n"
         "  the number of leases in use.\n"
         "- A series that begins late has its current value at once, because the text format has no creation "
         "timestamp.\n"
         "  `rate()` and `increase()` miss its first events and count from the second scrape on. A rule that must not\n"
         "  miss an event uses a series that begins with the origin, such as `carpool_pool_leaks_total`; a graph "
         "without\n"
         "  gaps uses `sum(rate(…)) or vector(0)`.\n"
         "- A histogram of an origin exports its buckets from its tenth value on. Before that it has `_count`, `_sum` "
         "and\n"
         "  the bucket `+Inf`.\n"
         "- The series of the pools are one consistent snapshot. carpool reads the counters of the loops (requests and "
         "their\n"
         "  times, retries, resets) while it writes the response, which takes as long as the client reads.\n"
         "- All histograms but two have the same buckets (seconds):";
  for (const std::uint64_t bound : kBounds) out << ' ' << static_cast<double>(bound) / 1e9;
  out << ".\n"
         "  Those two, of the ages and idle times of connections, have:";
  for (const std::uint64_t bound : kAgeBounds) out << ' ' << static_cast<double>(bound) / 1e9;
  out << ".\n"
         "- `carpool_pool_connection_age_seconds` and `…_idle_seconds` describe the connections that exist at the "
         "moment of\n"
         "  the scrape, so their counts fall, too: `histogram_quantile(0.9, "
         "carpool_pool_connection_age_seconds_bucket)` "
         "needs\n"
         "  no `rate()`. An origin exports them once it has had two connections at a time, and their buckets once it "
         "has had\n"
         "  ten. OTLP has no such type, so they are not exported there.\n"
         "- Prometheus stores all these histograms as native ones (with custom buckets, one series instead of 21) if "
         "its\n"
         "  `scrape_config` has `convert_classic_histograms_to_nhcb: true`; carpool needs no change.\n";
  out << "- States: `connecting idle borrowed expired_idle expired_borrowed draining tunnel`.\n- Opened by cause:";
  for (const std::string_view cause : pool::kOpenCauseNames) out << " `" << cause << '`';
  out << ".\n- Closed by cause ([explained](pool.md#the-causes)):";
  for (const std::string_view cause : pool::kCloseCauseNames) out << " `" << cause << '`';
  out << ".\n- Retries by reason (label `proof`):";
  for (const std::string_view reason : kRetryReasons) out << " `" << reason << '`';
  out << ".\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n";
  for (const auto& [metric, source] : catalog()) {
    std::string labels(metric.labels);
    for (std::size_t i = labels.find(','); i != std::string::npos; i = labels.find(',', i + 2))
      labels.insert(i + 1, " ");
    out << "| `" << metric.name << "` | " << name_of(metric.type) << " | " << labels << " | " << metric.help << " |\n";
  }
  return out.str();
}

TEST(Catalog, IsWhatTheDocumentSays) {
  const std::string path = std::string(CARPOOL_SOURCE_DIR) + "/docs/metrics.md";
  if (std::getenv("CARPOOL_UPDATE_DOCS") != nullptr) std::ofstream(path) << document();
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), document()) << "run metrics_tests with CARPOOL_UPDATE_DOCS=1";
}

}  // namespace
}  // namespace carpool::metrics
