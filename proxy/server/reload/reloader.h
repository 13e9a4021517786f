// Reloader: puts a new configuration in force while the server runs. Requested on the admin loop; the work (reading,
// checking, loading certificates, waiting for the loops) is a blocking task, one at a time, so no loop is delayed. In
// order: read, check, report the differences; prepare everything that can fail (files, sockets); then put it in force
// everywhere. Up to that point nothing has changed, so an invalid file costs only a log line.
//
// Work in progress finishes under the old configuration: requests keep the settings they began with, and clients keep
// those of their listener when they were accepted. Pools keep their connections.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/bound.h"
#include "exec/coalesced_mail.h"
#include "proxy/config/config.h"
#include "proxy/config/options.h"
#include "proxy/config/read.h"
#include "proxy/downstream/listener_credentials.h"
#include "proxy/downstream/listener_identity.h"
#include "proxy/net/bind.h"
#include "proxy/net/egress_policy.h"
#include "proxy/server/admin/control.h"
#include "proxy/server/reload/file_snapshot.h"
#include "proxy/server/reload/reload_barrier.h"
#include "proxy/server/reload/reload_queue.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

class AdminServer;
class CertificateEnds;
class InterceptLeaves;
class ConfigInForce;

class Reloader {
 public:
  using Report = admin::ReloadReport;

  // `source`: the origin of the configuration; empty if there is no file to read again.
  struct Parts {
    CertificateEnds& certificates;
    ConfigInForce& config;
    net::EgressPolicy& policy;
    AdminServer& admin;
    InterceptLeaves& intercept_leaves;
    ReloadBarrier::Parts round;
    exec::Bound watch_files;  // called on the admin loop when the set of watched files may have changed
    exec::Bound try_again;    // called on the admin loop when changed files could not be applied now
  };
  Reloader(const Parts& parts, std::optional<config::Options> source);
  ~Reloader();

  using PendingReport = ReloadQueue::PendingReport;  // written and read on the admin loop
  // Must be called on the admin loop. Queued behind a reload that is in progress.
  PendingReport reload(bool dry_run) LOOP_ONLY;
  // Calls reload(false), for HUP and changed files. Any thread.
  void ask();

  // Returns the files that are read for a configuration, the configuration file first; empty if there are none.
  static std::vector<std::string> files(const std::optional<config::Options>& source, const config::Config& config);
  // `before`: the snapshot taken before the first configuration was read. Must be called before the loop runs.
  void started(std::vector<FileSnapshot> before);
  // Calls watch() with the files of the configuration in force, and with their digests when they were read.
  template <class Watch>
  void with_files(Watch watch) LOOP_ONLY {
    watch(files(source_, in_force()), read_);
  }
  std::uint64_t applied() const { return applied_.load(std::memory_order_relaxed); }  // number of reloads; any thread
  std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  std::uint64_t met(config::ReadingLimit limit) const {
    return met_[static_cast<std::size_t>(limit)].load(std::memory_order_relaxed);
  }

 private:
  struct Plan;
  void next() LOOP_ONLY;
  void on_task_ended();
  void end(Report report) LOOP_ONLY;
  // ---- within the task ----
  Report work(bool dry_run);
  std::optional<config::Config> read_source(Report& report, std::size_t& digest);
  void read_them(Report::Outcome outcome);
  const config::Config& in_force() const;
  Status prepare(Plan& plan);
  Status prepare_admin(Plan& plan);
  Status prepare_listeners(Plan& plan);
  void apply(Plan& plan, Report& report);
  void log_report(const Report& report) const;

  const Parts parts_;
  const std::optional<config::Options> source_;
  ReloadQueue queue_;
  exec::CoalescedMail task_ended_;  // a mail that needs no memory, so that every task is followed by end()
  // ---- of the running task ----
  Report report_;
  std::size_t digest_ = 0;  // of the bytes of the last configuration read
  ListenerIdentity admin_identity_;
  std::vector<FileSnapshot> before_;  // snapshot of its files before they were read
  Digests read_;
  // Bound: the listeners in force, by Listen::name().
  struct Bound {
    net::Address address;
    ListenerIdentity identity;
    ListenerCredentials credentials;
  };
  std::map<std::string, Bound> bound_;
  // Kept because a loop did not respond in time; freed by the next reload to which every loop responds.
  std::vector<std::unique_ptr<const config::Config>> old_configs_;
  std::vector<std::unique_ptr<const net::EgressPolicy::RuleSet>> old_rule_sets_;
  std::vector<ListenerCredentials> old_credentials_;
  std::atomic<std::uint64_t> applied_{0}, refused_{0};                           // counters: relaxed, no partner
  std::array<std::atomic<std::uint64_t>, config::kReadingLimits.size()> met_{};  // likewise, by ReadingLimit
};

}  // namespace carpool::proxy
