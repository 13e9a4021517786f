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
  for (const Metric* metric : kCatalog) {
    const std::string_view name = metric->name;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_TRUE(name.rfind("carpool_", 0) == 0 || name.rfind("process_", 0) == 0) << name;
    EXPECT_EQ(metric->type == Type::counter, name.ends_with("_total")) << name;
    EXPECT_EQ(metric->type == Type::histogram && !name.ends_with("_seconds"), false) << name;
    EXPECT_EQ(metric->help.find_first_of("\n\\"), std::string_view::npos) << name;
    EXPECT_EQ(metric->help.back(), '.') << name;
  }
}

TEST(Catalog, HoldsEveryNameThatIsPromised) {
  std::set<std::string> there;
  for (const Metric* metric : kCatalog)
    there.insert(std::string(metric->name) + "{" + std::string(metric->labels) + "}");
  for (const char* promised : {"pool_borrows_total{origin}",
                               "pool_restores_total{origin}",
                               "pool_opened_total{origin,cause}",
                               "pool_closed_total{origin,cause}",
                               "pool_failures_total{origin,reason}",
                               "pool_connections{origin,state}",
                               "pool_connections_peak{origin}",
                               "pool_size{origin}",
                               "pool_waiting{origin}",
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
  return type == Type::counter ? "counter" : type == Type::gauge ? "gauge" : "histogram";
}

std::string document() {
  std::ostringstream out;
  out << "# Metrics\n\n"
         "`GET /metrics` on the admin address returns the Prometheus text format 0.0.4. `metrics/catalog.h` declares "
         "every\n"
         "metric once; this page is generated from it (`CARPOOL_UPDATE_DOCS=1 metrics_tests`).\n\n"
         "- Names and units follow Prometheus: base units, `_total` on counters. A family without data is omitted.\n"
         "- `origin` is `scheme://host[:port]`. The first `metrics.max_origins` origins keep their label for the life "
         "of\n"
         "  the process, and so does every [[origin]] (at most `max_origins` of them); all others are summed up as\n"
         "  `other`. Requests that were refused before they had an origin have `none`.\n"
         "- `method` is one of nine methods or `other`; `code` is 100 to 599 or `other`; 499 if the client left\n"
         "  before the response head.\n"
         "- Zero is sent of few series of an origin, so that one which is used once has less than 25: borrows, "
         "restores,\n"
         "  leaks, peak, size, waiting, the connections that are idle and borrowed, and the usable addresses. Each "
         "other\n"
         "  begins with its first event, and a gauge is sent while it is not zero: absent means 0. At every scrape\n"
         "  opened - closed is the sum of `carpool_pool_connections`; borrows - restores are the requests in flight.\n"
         "- A series begins at the value that it then has, and the text format carries no time of creation: `rate()`\n"
         "  and `increase()` see its growth from the second scrape on and miss its first events. Rules that must not "
         "miss\n"
         "  one ask for `carpool_pool_leaks_total`, which begins with the origin; a sum that must be drawn while "
         "nothing\n"
         "  happened is `sum(rate(…)) or vector(0)`.\n"
         "- The buckets of an origin's histogram are sent from its tenth value on: fewer have no percentiles. Before "
         "that\n"
         "  it has `_count`, `_sum` and the bucket `+Inf`.\n"
         "- The series of the pools are one consistent snapshot. The counters of the loops (requests and their times,\n"
         "  retries, resets) are read while the response is written, which takes as long as the client reads.\n"
         "- All histograms have the same buckets (seconds):";
  for (const std::uint64_t bound : kBounds) out << ' ' << static_cast<double>(bound) / 1e9;
  out << ".\n";
  out << "- States: `connecting idle borrowed expired_idle expired_borrowed draining tunnel`.\n- Opened by cause:";
  for (const std::string_view cause : pool::kOpenedNames) out << " `" << cause << '`';
  out << ".\n- Closed by cause ([each in a sentence](pool.md#the-causes)):";
  for (const std::string_view cause : pool::kClosedNames) out << " `" << cause << '`';
  out << ".\n- Replays by proof:";
  for (const std::string_view proof : kProofs) out << " `" << proof << '`';
  out << ".\n\n| metric | type | labels | what |\n|---|---|---|---|\n";
  for (const Metric* metric : kCatalog) {
    std::string labels(metric->labels);
    for (std::size_t i = labels.find(','); i != std::string::npos; i = labels.find(',', i + 2))
      labels.insert(i + 1, " ");
    out << "| `" << metric->name << "` | " << name_of(metric->type) << " | " << labels << " | " << metric->help
        << " |\n";
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
