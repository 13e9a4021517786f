// Reloader: another configuration for the running house. Asked on the admin loop; the work (reading, checking, loading
// certificates, waiting for the loops) is a blocking task, one at a time, so that it delays no loop. In order: read,
// check, say what differs; prepare whatever can fail (files, sockets); then put it in force everywhere. Until then
// nothing has changed, so a bad file costs nothing but a line in the log.
//
// Whoever is in the middle of something finishes by the old rules: requests keep the settings they began with, clients
// those of their listener when they came. Pools keep their connections.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/bound.h"
#include "exec/mail.h"
#include "proxy/config/config.h"
#include "proxy/config/options.h"
#include "proxy/config/read.h"
#include "proxy/net/bind.h"
#include "proxy/net/egress_policy.h"
#include "proxy/server/admin/control.h"
#include "proxy/server/reload/file_snapshot.h"
#include "proxy/server/reload/reload_barrier.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

class AdminServer;
class ConfigInForce;

class Reloader {
 public:
  using Report = admin::ReloadReport;

  // `source`: where the configuration came from; nothing: there is no file to read again.
  struct Parts {
    ConfigInForce& config;
    net::EgressPolicy& policy;
    AdminServer& admin;
    ReloadBarrier::Parts round;
    exec::Bound watch_files;  // called on the admin loop when other files may have to be watched
  };
  Reloader(const Parts& parts, std::optional<config::Options> source);
  ~Reloader();

  // Written when the reload has ended; read and written on the admin loop.
  using PendingReport = std::shared_ptr<std::optional<Report>>;
  // On the admin loop. Waits for the one that is under way.
  PendingReport reload(bool dry_run) LOOP_ONLY;
  // From any thread: reload(false), as HUP and changed files ask for it.
  void ask();

  // Files that a configuration depends on, itself first; empty: none.
  static std::vector<std::string> files(const std::optional<config::Options>& source, const config::Config& config);
  // The files of the first configuration were read since that look at them. Before the loop turns.
  void started(std::vector<FileSnapshot> before);
  // Calls watch() with the files of the configuration in force, and with what they held when they were read.
  template <class Watch>
  void with_files(Watch watch) LOOP_ONLY {
    watch(files(source_, in_force()), read_);
  }
  std::uint64_t applied() const { return applied_.load(std::memory_order_relaxed); }  // reloads; any thread
  std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  std::uint64_t met(config::ReadingLimit limit) const {
    return met_[static_cast<std::size_t>(limit)].load(std::memory_order_relaxed);
  }

 private:
  struct Plan;
  struct Asked {
    bool dry_run;
    PendingReport heard;
  };
  void next() LOOP_ONLY;
  void end(const PendingReport& heard, Report report) LOOP_ONLY;
  // ---- in the task ----
  Report work(bool dry_run);
  void read_them(Report::Outcome outcome);
  const config::Config& in_force() const;
  Status prepare(Plan& plan);
  Status prepare_listeners(Plan& plan);
  void apply(Plan& plan, Report& report);
  void tell(const Report& report) const;

  const Parts parts_;
  const std::optional<config::Options> source_;
  std::deque<Asked> asked_;           // by one admin client each, and once by HUP
  bool under_way_ = false;            // a task is; what follows is that task's
  std::size_t digest_ = 0;            // of the bytes that the configuration was read from last
  std::vector<FileSnapshot> before_;  // its files, before they were read
  Digests read_;
  std::map<std::string, net::Address> bound_;  // listeners in force: as configured -> as bound
  // What a loop did not let go in time; freed by the next reload that every loop answers.
  std::vector<std::unique_ptr<const config::Config>> old_configs_;
  std::vector<std::unique_ptr<const net::EgressPolicy::RuleSet>> old_books_;
  std::atomic<std::uint64_t> applied_{0}, refused_{0};                           // counts alone: relaxed, no partner
  std::array<std::atomic<std::uint64_t>, config::kReadingLimits.size()> met_{};  // the same, by ReadingLimit
};

}  // namespace carpool::proxy
