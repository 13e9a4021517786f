#include "proxy/server/run.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exec/uv/held_signals.h"
#include "exec/uv/signal.h"
#include "proxy/config/exit_code.h"
#include "proxy/server/sd_notify.h"
#include "proxy/server/server.h"
#include "proxy/server/start_pages.h"
#include "proxy/telemetry/log.h"
#include "proxy/telemetry/log_levels.h"
#include "proxy/upstream/fd_budget.h"

namespace carpool::proxy {

namespace {
log::Options log_options(const config::Config& config) {
  const config::Log& settings = config.log;
  log::Options options;
  options.level = static_cast<log::Level>(settings.level);
  log::set_access(settings.access, settings.access_sample, config::sends_client_addresses(config));
  options.format = settings.format == config::LogFormat::text ? log::Format::text : log::Format::json;
  options.file = settings.file;
  options.access_file = settings.access_file;
  constexpr std::string_view kUnix = "unix:";
  if (!settings.syslog.empty()) options.syslog = settings.syslog.substr(kUnix.size());
  return options;
}

// Returns true if the log is not on stderr, where the reason of a failed start is expected. Compares the files, because
// stderr has many names (/dev/stderr, /proc/self/fd/2, or that of the file to which it is redirected).
bool logs_elsewhere(const config::Log& settings) {
  if (!settings.syslog.empty()) return true;
  if (settings.file.empty()) return false;
  struct stat named {};
  struct stat standard {};
  return ::stat(settings.file.c_str(), &named) != 0 || ::fstat(STDERR_FILENO, &standard) != 0 ||
         named.st_dev != standard.st_dev || named.st_ino != standard.st_ino;
}

int exit_code(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::unroutable:
      return kExitCannotListen;
    case FaultKind::internal:
    case FaultKind::budget:  // no descriptors
      return kExitInternal;
    default:
      return kExitConfiguration;
  }
}

// Returns the exit code. Reports a Fault at any log level; `stderr_too`: also if the log has it.
int report(const Status& end, bool stderr_too) {
  if (end) return kExitClean;
  const bool logged = log::enabled(log::Level::error, "server");
  if (logged) log::error("server", end.fault().detail);
  if (!logged || stderr_too) std::fprintf(stderr, "carpool: %s\n", end.fault().detail.c_str());
  return exit_code(end.fault());
}

// Prints the errors of the files that the configuration names, with their lines, which a start does not record. Returns
// false if there are none, so the start failed for another reason.
bool report_files(config::Options source) {
  source.check = source.locate;
  const config::Reading reading = config::load(source, config::process_env());
  for (const config::ConfigError& error : reading.errors) {
    std::fprintf(stderr, "%s\n", error.line_text().c_str());
  }
  return !reading.errors.empty();
}

void log_start(const config::Config& config, const std::optional<config::Options>& source) {
  const bool named = source && !source->config.empty();
  log::info("server", "starting",
            {{"version", config::version()},
             {"pid", ::getpid()},
             {"file", named ? std::string_view(source->config) : "none: built-in defaults"},
             {"workers", config.workers}});
  if (!source) return;
  for (const std::string& warning : source->warnings) log::warn("server", warning);
}

void log_limits(const config::Config& config, const Server& server) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  log::info("server", "limits",
            {{"descriptors", std::uint64_t{files.rlim_cur}},
             {"memory_bytes", server.memory_limit()},
             {"connections", permitted_total(config)},
             {"origins", config.pool_total.max_origins},
             {"pool_size", config.pool.largest()},
             {"max_waiting", config.pool.max_waiting}});
  for (const auto& listener : server.listeners()) {
    const config::Listen& listen = listener->settings();
    const std::string address = listener->address().text();
    log::info("server", "listening",
              {{"address", address},
               {"tls", !listen.cert_file.empty()},
               {"origin", listen.origin.empty() ? std::string_view("any") : listen.origin},
               {"max_connections", listen.max_connections}});
  }
}

// Signals: TERM and INT drain, a second one ends at once; HUP reloads and USR1 reopens the log, as usual for a daemon.
class Signals {
 public:
  Signals(Server& server, const exec::HeldSignals& held) : server_(server), held_(held) {}
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals() { held_.hold(); }
  Status start() {
    auto signals = exec::on_signals(server_.first_loop(), exec::kHandledSignals, &Signals::arrived, this);
    if (!signals) return signals.take_fault();
    signals_ = std::move(*signals);
    held_.deliver();
    return Done{};
  }

 private:
  static std::string_view name_of(int number) {
    switch (number) {
      case SIGTERM:
        return "TERM";
      case SIGINT:
        return "INT";
      case SIGHUP:
        return "HUP";
      default:
        return "USR1";
    }
  }
  static void arrived(void* self, int number) { static_cast<Signals*>(self)->act(number); }
  void act(int number) {
    exec::assume_on_loop();
    log::info("server", "signal received", {{"signal", name_of(number)}});
    switch (number) {
      case SIGHUP:
        return server_.reload();
      case SIGUSR1:
        return server_.reopen_logs();
      default:
        break;
    }
    server_.stop();
  }
  Server& server_;
  const exec::HeldSignals& held_;
  std::vector<exec::Signal> signals_;
};

void announce_ready(Server& server) {
  give_back_start_pages();
  std::string line = "carpool ready";
  for (const auto& listener : server.listeners()) line += " listen=" + listener->address().text();
  if (server.admin().address() != nullptr) line += " admin=" + server.admin().address()->text();
  if (server.admin().metrics_address() != nullptr) line += " metrics=" + server.admin().metrics_address()->text();
  line += "\n";
  std::fputs(line.c_str(), stderr);
  sd_notify("READY=1");
}

int failed_start(std::unique_ptr<Server> server, const Status& status, const config::Config& config) {
  server.reset();  // while the log still works
  const int code = report(status, logs_elsewhere(config.log));
  log::stop();
  return code;
}

int ended(const Status& status) {
  const int code = report(status, false);
  log::info("server", "stopped", {{"exit_code", code}});
  return code;
}
}  // namespace

int serve(const config::Config& config, const config::Options& options) {
  return serve_with(config, options, nullptr);
}

int serve_with(const config::Config& config, std::optional<config::Options> source, LifecycleListener* listener) {
  const exec::HeldSignals held;
  if (const Status started = log::start(log_options(config)); !started) {
    std::fprintf(stderr, "carpool: %s\n", started.fault().detail.c_str());
    return started.fault().kind == FaultKind::internal ? kExitInternal : kExitConfiguration;
  }
  log_start(config, source);
  Result<std::unique_ptr<Server>> server = Server::build(config, source);
  if (!server) {
    const Fault fault = server.take_fault();
    const int code = exit_code(fault);
    if (code == kExitConfiguration && source && report_files(*source)) {
      log::stop();
      return code;
    }
    return failed_start(nullptr, fault, config);
  }
  log_limits(config, **server);
  Server::End end;
  {
    Signals signals(**server, held);
    if (const Status started = signals.start(); !started) return failed_start(std::move(*server), started, config);
    (*server)->when_ready(&announce_ready);
    if (listener != nullptr) listener->on_ready(**server);
    end = (*server)->run();
    if (listener != nullptr) listener->on_stopped();
    if (!end.tasks_ended) {
      const int code = ended(end.status);
      log::stop();
      std::_Exit(code);  // data that a task still uses must not be destroyed
    }
  }
  server->reset();  // destroys the parts in order while the log still works
  const int code = ended(end.status);
  log::stop();
  return code;
}

}  // namespace carpool::proxy
