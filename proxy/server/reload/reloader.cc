#include "proxy/server/reload/reloader.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/contents.h"
#include "base/open_to_read.h"
#include "exec/posted_function.h"
#include "proxy/config/diff.h"
#include "proxy/config/in_force.h"
#include "proxy/config/token_file.h"
#include "proxy/server/admin/admin_server.h"
#include "proxy/server/intercept_leaves.h"
#include "proxy/server/listener_set.h"
#include "proxy/server/reload/certificate_ends.h"
#include "proxy/server/reload/reload_barrier.h"
#include "proxy/telemetry/log.h"
#include "proxy/telemetry/log_levels.h"
#include "proxy/upstream/origin/origin_registry.h"

namespace carpool::proxy {

namespace {
using Outcome = admin::ReloadReport::Outcome;
constexpr Duration kReloadTimeout = std::chrono::seconds(5);  // for the loops, which should respond within milliseconds

bool listed(const std::vector<config::Listen>& all, const std::string& name) {
  return std::any_of(all.begin(), all.end(), [&](const config::Listen& l) { return l.name() == name; });
}

// Returns why a reload cannot read the configuration; empty if it can. The start may wait for the writer of a FIFO or
// of a pipe; a reload would hold up all later ones.
std::string why_unreadable(const std::string& path) {
  const Result<Fd> file = open_to_read(path);
  if (!file) return "cannot be read: " + file.fault().detail;
  struct stat status {};
  const bool pipe = ::fstat(file->get(), &status) == 0 && S_ISFIFO(status.st_mode);
  return pipe ? "is a pipe, which was read at the start: a reload needs a file" : "";
}
}  // namespace

// Plan: the result of all steps that can fail; nothing of it is in force yet.
struct Reloader::Plan {
  std::unique_ptr<config::Config> config;
  std::unique_ptr<net::EgressPolicy::RuleSet> rule_set;
  OriginRegistry::Prepared origins;
  std::shared_ptr<ReloadBarrier> round;
  std::map<std::string, Bound> bound;
  std::vector<std::string> files;  // of listeners, the admin endpoint and the authority, whose contents changed
  InterceptLeaves::Plan leaves;
  ListenerIdentity admin_identity;
};

Reloader::Reloader(const Parts& parts, std::optional<config::Options> source)
    : parts_(parts),
      source_(std::move(source)),
      task_ended_(parts.admin.loop(), exec::Bound::to<&Reloader::on_task_ended>(*this)) {
  exec::assume_on_loop();  // the admin loop has not started
  admin_identity_ = parts.admin.identity();
  for (const auto& listener : parts.round.listeners.open_ones())
    bound_[listener->settings().name()] = {listener->address(), listener->identity(), listener->credentials()};
}

Reloader::~Reloader() = default;

void Reloader::ask() {
  exec::send(parts_.admin.loop(), [this]() LOOP_ONLY { static_cast<void>(reload(false)); });
}

Reloader::PendingReport Reloader::reload(bool dry_run) {
  PendingReport pending = queue_.add(dry_run);
  next();
  return pending;
}

void Reloader::next() {
  const std::optional<bool> dry_run = queue_.begin();
  if (!dry_run) return;
  exec::TaskPtr task = exec::make_task("reload", [this, dry = *dry_run] {
    report_ = report_of([this, dry] { return work(dry); });
    task_ended_.post();
  });
  if (parts_.admin.submit(std::move(task))) return;
  Report report;
  report.outcome = Outcome::busy;
  report.errors.emplace_back("too many blocking tasks ([threads] max_tasks)");
  report.passing = true;
  end(std::move(report));
}

void Reloader::on_task_ended() {
  exec::assume_on_loop();
  end(std::move(report_));
}

// Performs the part of a reload that must run on the admin loop.
void Reloader::end(Report report) {
  if (report.outcome == Outcome::applied || report.outcome == Outcome::unchanged) {
    parts_.admin.set_identity(admin_identity_);
    const Result<bool> replaced = parts_.admin.read_token();
    if (!replaced) report.warnings.push_back(replaced.fault().detail);
    if (replaced && *replaced) {
      report.renewed.push_back(parts_.config.get().admin.token_file);
      report.outcome = Outcome::applied;
    }
    read_them(report.outcome);
    parts_.watch_files();
  }
  if (report.passing) parts_.try_again();
  if (report.outcome == Outcome::refused) refused_.fetch_add(1, std::memory_order_relaxed);
  if (report.outcome == Outcome::applied) applied_.fetch_add(1, std::memory_order_relaxed);
  log_report(report);
  queue_.end(std::move(report));
  next();
}

const config::Config& Reloader::in_force() const {
  return parts_.config.get();
}

void Reloader::started(std::vector<FileSnapshot> before) {
  digest_ = source_ ? source_->digest : 0;
  before_ = std::move(before);
  read_them(Outcome::applied);
}

// A file that changed while it was read counts as unknown and is read again, except after a reload that found no
// change, because the file may differ at every snapshot.
void Reloader::read_them(Outcome outcome) {
  parts_.certificates.read(parts_.config.get());
  read_ = read_between(before_, take_snapshots(files(source_, parts_.config.get())));
  for (std::size_t i = 0; i < read_.size() && outcome == Outcome::unchanged; ++i) read_[i] = before_[i].digest;
  if (!read_.empty()) read_.front() = digest_;
}

std::vector<std::string> Reloader::files(const std::optional<config::Options>& source, const config::Config& config) {
  const std::string main = source ? config::find_config(*source) : std::string();
  if (main.empty()) return {};
  const config::Admin& admin = config.admin;
  std::vector<std::string> all{main};
  if (config::needs_token(admin)) all.push_back(admin.token_file);
  if (admin.enabled) all.insert(all.end(), {admin.cert_file, admin.key_file, admin.client_ca_file});
  const auto add = [&all](const config::Tls& tls) {
    for (const std::string& file : {tls.ca_file, tls.cert_file, tls.key_file}) all.push_back(file);
  };
  add(config.upstream.tls);
  for (const config::OriginSettings& origin : config.origins) add(origin.upstream.tls);
  for (const config::Listen& listen : config.listen) {
    for (const std::string& file :
         {listen.cert_file, listen.key_file, listen.client_ca_file, listen.credentials_file}) {
      all.push_back(file);
    }
  }
  // The key is not read without need: a new key is accompanied by a new certificate.
  if (!config.intercept.ca_dir.empty()) all.push_back(config.intercept.ca_dir + "/ca.pem");
  std::erase(all, std::string());
  return all;
}

// Reads the configuration. Returns nothing if it must not be applied; the report then contains the reason.
std::optional<config::Config> Reloader::read_source(Report& report, std::size_t& digest) {
  const std::string path = config::find_config(*source_);
  if (std::string why = path.empty() ? "" : why_unreadable(path); !why.empty()) {
    report.errors.push_back(path + ": " + why);
    return std::nullopt;
  }
  config::Reading reading = config::load(*source_, config::process_env(), &digest);
  for (std::size_t i = 0; i < met_.size(); ++i) met_[i].fetch_add(reading.met[i] ? 1 : 0, std::memory_order_relaxed);
  // A program that rewrites the file in place truncates it first, and an empty configuration would mean the defaults.
  if (digest == digest_of({})) {
    report.errors.push_back(path + ": is empty, probably still being written");
    return std::nullopt;
  }
  // Settings that need a restart are not prepared, so they are checked as by --check. Files may be replaced only in
  // part.
  if (reading && source_->locate != nullptr) {
    source_->locate(reading);
    report.passing = !reading;
  }
  for (const config::ConfigError& warning : reading.warnings) report.warnings.push_back(warning.line_text());
  for (const config::ConfigError& error : reading.errors) report.errors.push_back(error.line_text());
  if (!reading) return std::nullopt;
  for (config::Change& change : config::diff(parts_.config.get(), reading.config)) {
    report.changes.push_back({std::move(change.key), std::move(change.from), std::move(change.to), change.live});
  }
  return std::move(reading.config);
}

admin::ReloadReport Reloader::work(bool dry_run) {
  Report report;
  const auto end = [&](Outcome outcome) {
    report.outcome = outcome;
    return report;
  };
  if (!source_ || !parts_.round.drain.serving()) {
    report.errors.emplace_back(source_ ? "carpool is draining" : "there is no configuration file to reload");
    return end(Outcome::busy);
  }
  std::size_t digest = 0;
  std::optional<config::Config> fresh = read_source(report, digest);
  if (!fresh) return end(Outcome::refused);
  if (dry_run) return end(Outcome::dry_run);
  config::keep_what_needs_restart(parts_.config.get(), *fresh);
  Plan plan;
  plan.config = std::make_unique<config::Config>(std::move(*fresh));
  std::vector<FileSnapshot> before = take_snapshots(files(source_, *plan.config));
  if (Status prepared = prepare(plan); !prepared) {
    report.errors.push_back(prepared.fault().detail);
    report.passing = true;  // an address in use, a file that was replaced only in part
    return end(Outcome::refused);
  }
  digest_ = digest;
  before_ = std::move(before);
  report.renewed = plan.origins.files;
  report.renewed.insert(report.renewed.end(), plan.files.begin(), plan.files.end());
  apply(plan, report);
  return end(report.changes.empty() && report.renewed.empty() ? Outcome::unchanged : Outcome::applied);
}

Status Reloader::prepare(Plan& plan) {
  Result<std::unique_ptr<net::EgressPolicy::RuleSet>> rule_set = net::EgressPolicy::read(plan.config->egress);
  if (!rule_set) return rule_set.take_fault();
  plan.rule_set = std::move(*rule_set);
  plan.round = std::make_shared<ReloadBarrier>(parts_.round);
  if (Status listeners = prepare_listeners(plan); !listeners) return listeners;
  if (Status admin = prepare_admin(plan); !admin) return admin;
  Result<InterceptLeaves::Plan> leaves = parts_.intercept_leaves.prepare(*plan.config);
  if (!leaves) return leaves.take_fault();
  plan.leaves = std::move(*leaves);
  if (plan.leaves.replaces) plan.files.push_back(plan.config->intercept.ca_dir + "/ca.pem");
  Result<OriginRegistry::Prepared> origins = parts_.round.origins.prepare(*plan.config);
  if (!origins) return origins.take_fault();
  plan.origins = std::move(*origins);
  for (const auto& [identity, context] : plan.origins.renewed) plan.round->renewed.push_back(identity);
  return Done{};
}

Status Reloader::prepare_admin(Plan& plan) {
  Result<ListenerIdentity> identity = read_identity(plan.config->admin, admin_identity_);
  if (!identity) return identity.take_fault();
  const bool replaced = admin_identity_ != nullptr && *identity != nullptr && *identity != admin_identity_;
  if (replaced) plan.files.push_back(plan.config->admin.cert_file);
  plan.admin_identity = std::move(*identity);
  return Done{};
}

Status Reloader::prepare_listeners(Plan& plan) {
  for (const auto& [name, bound] : bound_) {
    if (!listed(plan.config->listen, name)) plan.round->listeners.closing.push_back(name);
  }
  for (const config::Listen& listen : plan.config->listen) {
    const auto known = bound_.find(listen.name());
    const ListenerIdentity before = known == bound_.end() ? nullptr : known->second.identity;
    Result<ListenerIdentity> identity = read_identity(listen, before);
    if (!identity) return identity.take_fault();
    const ListenerCredentials used = known == bound_.end() ? nullptr : known->second.credentials;
    Result<ListenerCredentials> credentials = read_credentials(listen, used);
    if (!credentials) return credentials.take_fault();
    if (known != bound_.end()) {
      if (before != nullptr && *identity != before && *identity != nullptr) plan.files.push_back(listen.cert_file);
      if (used != nullptr && *credentials != used && *credentials != nullptr)
        plan.files.push_back(listen.credentials_file);
      plan.bound[listen.name()] = {known->second.address, *identity, *credentials};
      plan.round->listeners.changing.push_back({listen, std::move(*identity), std::move(*credentials)});
      continue;
    }
    Result<net::Bound> bound = net::bind_and_listen(listen.address, kListenBacklog, Listener::access_of(listen));
    if (!bound) return bound.take_fault();
    plan.bound[listen.name()] = {bound->address, *identity, *credentials};
    plan.round->listeners.opening.push_back({listen, std::move(*bound), std::move(*identity), std::move(*credentials)});
  }
  plan.round->dns = plan.config->dns;
  plan.round->otlp = plan.config->otlp;
  plan.rule_set->forbidden = parts_.policy.rule_set().forbidden;
  for (const auto& [name, bound] : plan.bound) plan.rule_set->own.push_back(bound.address);
  return Done{};
}

void Reloader::apply(Plan& plan, Report& report) {
  const config::Config& fresh = *plan.config;
  log::set_access(fresh.log.access, fresh.log.access_sample, config::sends_client_addresses(fresh));
  const auto level = static_cast<log::Level>(fresh.log.level);
  if (fresh.log.level != parts_.config.get().log.level) log::set_level(level);
  old_configs_.push_back(parts_.config.replace(std::move(plan.config)));
  old_rule_sets_.push_back(parts_.policy.replace(std::move(plan.rule_set)));
  for (std::string& one : parts_.round.origins.apply(fresh, std::move(plan.origins))) {
    report.warnings.push_back("settings not applied: " + one);
  }
  plan.round->addresses_forbidden = parts_.round.origins.apply_policy(parts_.policy);
  parts_.intercept_leaves.apply(std::move(plan.leaves));
  admin_identity_ = std::move(plan.admin_identity);
  for (auto& [name, bound] : bound_) old_credentials_.push_back(std::move(bound.credentials));
  bound_ = std::move(plan.bound);
  for (const config::Listen& listen : fresh.listen) {
    const Status set = net::set_access(bound_.at(listen.name()).address, Listener::access_of(listen));
    if (!set) report.warnings.push_back("settings not applied: " + set.fault().detail);
  }
  if (plan.round->run(kReloadTimeout)) {
    old_configs_.clear();
    old_rule_sets_.clear();
    old_credentials_.clear();
    for (const std::string& name : plan.round->applied.not_open) bound_.erase(name);
    for (const std::string& one : plan.round->applied.not_applied) {
      report.warnings.push_back("settings not applied: " + one);
    }
  } else {
    report.warnings.emplace_back("a loop does not respond: it applies the configuration later");
  }
}

void Reloader::log_report(const Report& report) const {
  for (const std::string& error : report.errors) log::error("reload", error);
  for (const std::string& warning : report.warnings) log::warn("reload", warning);
  if (report.outcome == Outcome::refused)
    return log::error("reload", "reload refused; the configuration in force stays");
  if (report.outcome == Outcome::unchanged) log::info("reload", "the configuration is unchanged");
  if (report.outcome != Outcome::applied) return;
  for (const Report::Change& change : report.changes) {
    log::info(
        "reload", "changed",
        {{"key", change.key}, {"from", change.from}, {"to", change.to}, {"applies", change.live ? "now" : "restart"}});
  }
  log::info("reload", "configuration reloaded", {{"changes", report.changes.size()}, {"files", report.renewed.size()}});
}

}  // namespace carpool::proxy
