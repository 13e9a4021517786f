// ReloadQueue: the reloads that were requested: the running one and those that wait. One that waits has read nothing
// yet, so further requests of its kind share it and its report: at most one reload and one dry run wait.
#pragma once

#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "proxy/server/admin/control.h"

namespace carpool::proxy {

class ReloadQueue {
 public:
  using Report = admin::ReloadReport;
  // PendingReport: set when the reload has ended.
  using PendingReport = std::shared_ptr<std::optional<Report>>;

  PendingReport add(bool dry_run) {
    for (const Waiting& one : waiting_) {
      if (one.dry_run == dry_run) return one.pending;
    }
    waiting_.push_back({dry_run, std::make_shared<std::optional<Report>>()});
    return waiting_.back().pending;
  }
  // Returns whether the next one is a dry run; end() must follow. Returns nothing while one runs, or if none waits.
  std::optional<bool> begin() {
    if (running_ != nullptr || waiting_.empty()) return std::nullopt;
    const bool dry_run = waiting_.front().dry_run;
    running_ = std::move(waiting_.front().pending);
    waiting_.pop_front();
    return dry_run;
  }
  void end(Report report) { *std::exchange(running_, nullptr) = std::move(report); }

 private:
  struct Waiting {
    bool dry_run;
    PendingReport pending;
  };
  std::deque<Waiting> waiting_;
  PendingReport running_;
};

// Returns the report of work(), or a refusal if it throws.
template <class Work>
admin::ReloadReport report_of(Work work) {
  std::string why = "the reload failed: ";
  try {
    return work();
  } catch (const std::exception& failure) {
    why += failure.what();
  } catch (...) {
    why += "an exception of an unknown type";
  }
  admin::ReloadReport report;
  report.outcome = admin::ReloadReport::Outcome::refused;
  report.errors.push_back(std::move(why));
  report.passing = true;
  return report;
}

}  // namespace carpool::proxy
