#include "proxy/server/admin_control.h"

#include <array>
#include <atomic>
#include <limits>
#include <memory>
#include <string>

#include "exec/posted_function.h"
#include "pool/directory/directory.h"
#include "proxy/config/text.h"
#include "proxy/server/admin/handlers/pool_commands.h"
#include "proxy/server/admin/handlers/reload.h"
#include "proxy/server/admin/handlers/warm_up.h"
#include "proxy/server/drain.h"
#include "proxy/server/reload/reloader.h"
#include "proxy/telemetry/log.h"
#include "proxy/telemetry/log_levels.h"
#include "proxy/upstream/origin/origin_registry.h"
#include "proxy/upstream/warm_up.h"

namespace carpool::proxy {

namespace {
std::string known_modules() {
  std::string text;
  for (const std::string_view module : log::kModules) text.append(text.empty() ? "" : ", ").append(module);
  return text;
}
}  // namespace

admin::LogLevels ServerAdminControl::log_levels() const {
  admin::LogLevels levels{std::string(log::name(log::level())), {}};
  for (const auto& [module, level] : log::module_levels()) levels.modules.emplace_back(module, log::name(level));
  return levels;
}

Status ServerAdminControl::set_log_level(std::string_view module, std::string_view level) {
  const std::optional<log::Level> wanted = log::parse_level(level);
  if (!wanted) {
    return Fault{FaultKind::malformed_request, Side::client, "level must be trace, debug, info, warn, error or off"};
  }
  if (module.empty()) {
    log::set_level(*wanted);
  } else if (!log::set_level(module, *wanted)) {
    return Fault{FaultKind::malformed_request, Side::client, "unknown module; known: " + known_modules()};
  }
  log::warn("admin", "log level set",
            {{"new_level", level}, {"of", module.empty() ? std::string_view("all") : module}});
  return Done{};
}

namespace {
constexpr const char* kDraining = "carpool is draining";

class PendingReload final : public admin::PendingResponse {
 public:
  PendingReload(Reloader::PendingReport report, const bool& loops_ended)
      : report_(std::move(report)), loops_ended_(loops_ended) {}
  std::optional<admin::Response> poll_pending() override {
    if (*report_) return admin::reload_response(**report_);
    if (loops_ended_) return admin::error_response(503, kDraining);
    return std::nullopt;
  }

 private:
  Reloader::PendingReport report_;
  const bool& loops_ended_;
};
}  // namespace

std::unique_ptr<admin::PendingResponse> ServerAdminControl::reload(bool dry_run) {
  exec::assume_on_loop();  // the admin endpoint's loop
  return std::make_unique<PendingReload>(parts_.reloader->reload(dry_run), loops_ended_);
}

bool ServerAdminControl::quit() {
  log::info("server", "POST /quit received");
  const bool first = parts_.drain.serving();
  if (first) {
    exec::send(parts_.first_loop, [&drain = parts_.drain]() LOOP_ONLY {
      if (drain.serving()) drain.begin();
    });
  }
  return first;
}

// ---- warm-up ----

namespace {
// PendingWarmUp: the command is posted to the first worker, which assigns its number, or none if it drains.
// poll_pending() uses the number here to determine whether the warm-up has ended.
class PendingWarmUp final : public admin::PendingResponse {
 public:
  PendingWarmUp(const ServerAdminControl::Parts& parts, const pool::Origin& origin, std::uint32_t size,
                const bool& loops_ended)
      : warm_up_(parts.warm_up), number_(std::make_shared<std::atomic<std::uint64_t>>(0)), loops_ended_(loops_ended) {
    exec::send(parts.first_loop, [&parts, origin, size, number = number_]() LOOP_ONLY {
      number->store(parts.drain.serving() ? parts.warm_up.begin(origin, size) : kNone, std::memory_order_release);
    });
  }
  std::optional<admin::Response> poll_pending() override {
    const std::uint64_t number = number_->load(std::memory_order_acquire);  // pairs with the release above
    if (number == kNone) return admin::error_response(503, kDraining);
    const std::optional<WarmUpResult> result = number == 0 ? std::nullopt : warm_up_.result(number);
    if (result) {
      return admin::warm_up_response(result->made, result->failure, {result->requested, result->capped_at});
    }
    if (loops_ended_) return admin::error_response(503, kDraining);
    return std::nullopt;
  }

 private:
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  WarmUp& warm_up_;
  std::shared_ptr<std::atomic<std::uint64_t>> number_;
  const bool& loops_ended_;
};
}  // namespace

Result<std::unique_ptr<admin::PendingResponse>> ServerAdminControl::warm_up(const pool::Origin& origin,
                                                                            std::uint32_t size) {
  const bool resolved = !parts_.origins.through_parent(origin);
  if (Status asked = parts_.policy.may_ask(origin, nullptr, resolved); !asked) return asked.take_fault();
  if (Result<OriginRuntime*> known = parts_.origins.at(origin); !known) return known.take_fault();
  return std::unique_ptr<admin::PendingResponse>(std::make_unique<PendingWarmUp>(parts_, origin, size, loops_ended_));
}

// ---- pool commands ----

namespace {
void apply_to(pool::Destination& destination, const admin::PoolCommand& command, Instant now) LOOP_ONLY {
  const Instant until = command.lasts ? now + *command.lasts : kNever;
  switch (command.action) {
    case admin::PoolAction::pause:
      return destination.pause(now, until);
    case admin::PoolAction::resume:
      return destination.resume(now);
    case admin::PoolAction::drain:
      return destination.drain(now, until);
    case admin::PoolAction::reconnect:
      return destination.reconnect(now);
  }
}

// PendingCommand: runs on the first worker's loop, because every call of the pool must come from a loop. Commands also
// apply during a drain, whose requests may wait for a resume. A command that comes too late for the loop gets 409.
class PendingCommand final : public admin::PendingResponse {
 public:
  PendingCommand(const ServerAdminControl::Parts& parts, std::string origin, const admin::PoolCommand& command,
                 const bool& loops_ended)
      : given_(std::make_shared<std::atomic<bool>>(false)), command_(command), loops_ended_(loops_ended) {
    exec::send(parts.first_loop, [&parts, origin = std::move(origin), command, given = given_]() LOOP_ONLY {
      if (parts.drain.stage() == Drain::Stage::over) return;  // the loops stop
      const Instant now = parts.first_loop.now();
      if (const Result<pool::Origin> declared = pool::parse_origin(origin)) {
        static_cast<void>(parts.origins.at(*declared));  // an [[origin]] that no request has used has no pool yet
      }
      for (pool::Destination* destination : parts.origins.directory().all()) {
        if (destination->label() == origin) apply_to(*destination, command, now);
      }
      given->store(true, std::memory_order_release);
    });
  }
  std::optional<admin::Response> poll_pending() override {
    // acquire pairs with the release above.
    if (given_->load(std::memory_order_acquire)) return admin::pool_command_response(command_);
    if (loops_ended_) return admin::error_response(409, "carpool has drained and exits: the command had no effect");
    return std::nullopt;
  }

 private:
  std::shared_ptr<std::atomic<bool>> given_;
  const admin::PoolCommand command_;
  const bool& loops_ended_;
};

std::string_view name(admin::PoolAction action) {
  constexpr std::array<std::string_view, 4> kNames{"pause", "resume", "drain", "reconnect"};
  return kNames[static_cast<std::size_t>(action)];
}
}  // namespace

std::unique_ptr<admin::PendingResponse> ServerAdminControl::apply(const std::string& origin,
                                                                  admin::PoolCommand command) {
  const std::string ends = command.lasts ? "in " + config::duration_text(*command.lasts) : "by resume";
  const bool pauses = command.action == admin::PoolAction::pause || command.action == admin::PoolAction::drain;
  log::warn(
      "admin", "command to a pool",
      {{"origin", origin}, {"order", name(command.action)}, {"ends", pauses ? std::string_view(ends) : "at once"}});
  return std::make_unique<PendingCommand>(parts_, origin, command, loops_ended_);
}

}  // namespace carpool::proxy
