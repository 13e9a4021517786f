#include "proxy/server/run.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exec/uv/signal.h"
#include "proxy/server/sd_notify.h"
#include "proxy/server/server.h"
#include "proxy/telemetry/log.h"
#include "proxy/telemetry/log_levels.h"

namespace carpool::proxy {

namespace {
constexpr int kClean = 0, kConfiguration = 1, kCannotListen = 2, kInternal = 3;

log::Options log_options(const config::Config& config) {
  const config::Log& settings = config.log;
  log::Options options;
  options.level = static_cast<log::Level>(settings.level);
  log::set_access(settings.access, settings.access_sample, config::tells_clients(config));
  options.format = settings.format == config::LogFormat::text ? log::Format::text : log::Format::json;
  return options;
}

int exit_code(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::unroutable:
      return kCannotListen;
    case FaultKind::internal:
    case FaultKind::budget:  // no descriptors
      return kInternal;
    default:
      return kConfiguration;
  }
}

// Returns the exit code; a Fault is printed.
int report(const Status& end) {
  if (end) return kClean;
  std::fprintf(stderr, "carpool: %s\n", end.fault().detail.c_str());
  return exit_code(end.fault());
}

// TERM and INT drain, a second one ends at once; HUP reloads and USR1 reopens the log, as usual for a daemon.
class Signals {
 public:
  explicit Signals(Server& server) : server_(server) {
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) {
      Result<exec::Signal> signal = exec::on_signal(server.first_loop(), number, &Signals::arrived, this);
      if (signal) signals_.push_back(std::move(*signal));
    }
  }

 private:
  static void arrived(void* self, int number) { static_cast<Signals*>(self)->act(number); }
  void act(int number) {
    exec::assume_on_loop();
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
  std::vector<exec::Signal> signals_;
};

void announce_ready(Server& server) {
  std::string line = "carpool ready";
  for (const auto& listener : server.listeners()) line += " listen=" + listener->address().text();
  if (server.admin().address() != nullptr) line += " admin=" + server.admin().address()->text();
  if (server.admin().metrics_address() != nullptr) line += " metrics=" + server.admin().metrics_address()->text();
  line += "\n";
  std::fputs(line.c_str(), stderr);
  // After a hand-over systemd must watch this process instead of the old one.
  const std::string whom = server.inherited_sockets() ? "\nMAINPID=" + std::to_string(::getpid()) : std::string();
  sd_notify("READY=1" + whom);
}
}  // namespace

int serve(const config::Config& config, const config::Options& options) {
  return serve_with(config, options, nullptr);
}

int serve_with(const config::Config& config, std::optional<config::Options> source, LifecycleListener* listener) {
  if (!log::start(log_options(config))) {
    return report(Fault{FaultKind::internal, Side::self, "cannot start the log's thread"});
  }
  Result<std::unique_ptr<Server>> server = Server::build(config, std::move(source));
  if (!server) {
    log::stop();
    return report(server.take_fault());
  }
  Server::End end;
  {
    const Signals signals(**server);
    (*server)->when_ready(&announce_ready);
    if (listener != nullptr) listener->on_ready(**server);
    end = (*server)->run();
    if (listener != nullptr) listener->on_stopped();
    if (!end.tasks_ended) {
      log::stop();
      std::_Exit(report(end.status));  // data that a task still uses must not be destroyed
    }
  }
  server->reset();  // destroys the parts in order while the log still works
  log::stop();
  return report(end.status);
}

}  // namespace carpool::proxy
