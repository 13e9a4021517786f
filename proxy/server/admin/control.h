// AdminControl: the changes that the admin endpoint may make to the running program. Called on the admin thread;
// changes to data of a loop are posted to that loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "pool/origin.h"
#include "proxy/server/admin/response.h"

namespace carpool::proxy::admin {

struct LogLevels {
  std::string level;                                         // level of every module without a level of its own
  std::vector<std::pair<std::string, std::string>> modules;  // modules with a level of their own
};

struct ReloadReport {
  enum class Outcome : std::uint8_t { applied, unchanged, dry_run, refused, busy } outcome = Outcome::unchanged;
  struct Change {
    std::string key, from, to;
    bool live = true;  // false: takes effect after a restart
  };
  std::vector<Change> changes;
  std::vector<std::string> renewed;  // files of certificates, keys, credentials and the token whose contents changed
  std::vector<std::string> errors;   // why the reload was refused; nothing has changed then
  std::vector<std::string> warnings;
  bool passing = false;  // refused or busy for a reason that may pass without a change of the files
};

enum class PoolAction : std::uint8_t { pause, resume, drain, reconnect };
struct PoolCommand {
  PoolAction action = PoolAction::pause;
  std::optional<Duration> lasts;  // time after which a pause or a drain ends automatically
};

class AdminControl {
 public:
  // Applies `command` to every pool with that label. The response is available when it was applied.
  virtual std::unique_ptr<PendingResponse> apply(const std::string& origin, PoolCommand command) = 0;
  // Opens connections until `size` are open, and creates the pool if there is none. The response is available when all
  // dials have ended, within connect_timeout. Returns a Fault if the origin is not allowed (egress) or there are too
  // many pools.
  virtual Result<std::unique_ptr<PendingResponse>> warm_up(const pool::Origin& origin, std::uint32_t size) = 0;
  virtual LogLevels log_levels() const = 0;
  // Sets the level of a module. An empty module means all of them, and removes their own levels. The Fault lists the
  // known names.
  virtual Status set_log_level(std::string_view module, std::string_view level) = 0;
  // Drains and exits. Returns false if that has already begun.
  virtual bool quit() = 0;
  // Reads the configuration again; a dry run only reports what would change. The response is available when the
  // configuration is in force on every loop, or was refused.
  virtual std::unique_ptr<PendingResponse> reload(bool dry_run) = 0;
  // The loops of the workers have ended: what they have not done is not done any more, and every pending response is
  // known at its next poll.
  virtual void loops_ended() {}

 protected:
  ~AdminControl() = default;
};

}  // namespace carpool::proxy::admin
