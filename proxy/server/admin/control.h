// AdminControl: what the admin endpoint may change in the running program. Called on the admin endpoint's own thread;
// whatever belongs to a loop travels there by mail.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "pool/origin.h"
#include "proxy/server/admin/response.h"

namespace carpool::proxy::admin {

struct LogLevels {
  std::string level;                                         // of every module without one of its own
  std::vector<std::pair<std::string, std::string>> modules;  // those that have one
};

struct ReloadReport {
  enum class Outcome : std::uint8_t { applied, unchanged, dry_run, refused, busy } outcome = Outcome::unchanged;
  struct Change {
    std::string key, from, to;
    bool live = true;  // false: it takes a restart
  };
  std::vector<Change> changes;
  std::vector<std::string> renewed;   // files whose contents changed: certificates, keys
  std::vector<std::string> mistakes;  // why it was refused: nothing has changed
  std::vector<std::string> warnings;
};

enum class PoolCommand : std::uint8_t { pause, resume, drain, reconnect };

class AdminControl {
 public:
  // To every pool of that label; the answer comes when it was given.
  virtual std::unique_ptr<PendingResponse> order(const std::string& origin, PoolCommand order) = 0;
  // Opens connections until `size` are open; the pool is made if there is none. The answer comes when that has ended,
  // within connect_timeout. The Fault: the origin may not be reached (egress), or there are too many.
  virtual Result<std::unique_ptr<PendingResponse>> warm_up(const pool::Origin& origin, std::uint32_t size) = 0;
  virtual LogLevels log_levels() const = 0;
  // An empty module: all of them, whatever they had of their own. The Fault names what is known.
  virtual Status set_log_level(std::string_view module, std::string_view level) = 0;
  // Drains and exits. False: that is going on already.
  virtual bool quit() = 0;
  // Reads the configuration again; a dry run only says what would change. The answer comes when it is in force on
  // every loop, or refused.
  virtual std::unique_ptr<PendingResponse> reload(bool dry_run) = 0;

 protected:
  ~AdminControl() = default;
};

}  // namespace carpool::proxy::admin
