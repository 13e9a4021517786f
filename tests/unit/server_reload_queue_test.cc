// Unit tests of the reloads that wait for a running one, and of a reload that throws.
#include "proxy/server/reload/reload_queue.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

namespace carpool::proxy {
namespace {

using QueuedReport = admin::ReloadReport;

QueuedReport applied_report() {
  QueuedReport report;
  report.outcome = QueuedReport::Outcome::applied;
  return report;
}

TEST(AReloadQueue, RunsOneAtATimeInOrder) {
  ReloadQueue queue;
  EXPECT_FALSE(queue.begin());
  const auto first = queue.add(false);
  const auto second = queue.add(true);
  EXPECT_EQ(queue.begin(), std::optional(false));
  EXPECT_FALSE(queue.begin()) << "the first one runs";
  queue.end(applied_report());
  EXPECT_TRUE(*first);
  EXPECT_FALSE(*second);
  EXPECT_EQ(queue.begin(), std::optional(true));
  queue.end(applied_report());
  EXPECT_TRUE(*second);
  EXPECT_FALSE(queue.begin());
}

TEST(AReloadQueue, AnswersAllThatWaitWithOneReload) {
  ReloadQueue queue;
  const auto running = queue.add(false);
  ASSERT_TRUE(queue.begin());
  const auto waiting = queue.add(false);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(queue.add(false), waiting);
  EXPECT_NE(running, waiting) << "the running one may have read the files already";
  queue.end(applied_report());
  ASSERT_TRUE(queue.begin());
  queue.end(applied_report());
  EXPECT_TRUE(*waiting);
  EXPECT_FALSE(queue.begin());
}

TEST(AReload, ThatThrowsIsRefusedWithTheReason) {
  const QueuedReport failed = report_of([]() -> QueuedReport { throw std::runtime_error("no more of it"); });
  EXPECT_EQ(failed.outcome, QueuedReport::Outcome::refused);
  ASSERT_EQ(failed.errors.size(), 1U);
  EXPECT_NE(failed.errors.front().find("no more of it"), std::string::npos);
  EXPECT_EQ(report_of([]() -> QueuedReport { throw 1; }).outcome, QueuedReport::Outcome::refused);
  EXPECT_EQ(report_of([]() -> QueuedReport { throw std::bad_alloc(); }).outcome, QueuedReport::Outcome::refused);
  EXPECT_EQ(report_of(applied_report).outcome, QueuedReport::Outcome::applied);
}

}  // namespace
}  // namespace carpool::proxy
