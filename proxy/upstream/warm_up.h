// WarmUp: opens connections before requests need them: at start for the origins of the configuration, and on an
// operator's command. A warm-up begins with a single dial, so that an unreachable origin causes one failure instead of
// many, and ends within connect_timeout. The program becomes ready when all warm-ups at start have ended, successfully
// or not. /readyz names the failed ones; they are retried with a growing pause and do not make the program unready.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "exec/loop.h"
#include "exec/timer.h"
#include "proxy/upstream/origin/origin_registry.h"

namespace carpool::proxy {

class ConfigInForce;

struct WarmUpResult {
  std::uint32_t made = 0;
  std::optional<std::string> failure;      // the first failure
  std::uint32_t requested = 0;             // wanted number of open connections
  std::optional<std::uint32_t> capped_at;  // the pool's size now, if that is less
};

class WarmUp {
 public:
  class Host {
   public:
    virtual void on_warm() LOOP_ONLY = 0;  // called once: all warm-ups at start have ended

   protected:
    ~Host() = default;
  };

  WarmUp(exec::Loop& loop, OriginRegistry& origins, const ConfigInForce& config, Host& host);

  // ---- on `loop`, that of the first worker ----
  void start() LOOP_ONLY;  // may call on_warm()
  // Starts to dial until `open` connections of `origin` are open. Returns the number to pass to result().
  std::uint64_t begin(const pool::Origin& origin, std::uint32_t open, bool at_start = false) LOOP_ONLY;
  // Must be called when a dial of cause warm_up begins. Returns the attempt to which it belongs, or 0 for none: the
  // hand-over warms up pools, too.
  std::uint64_t dial_begun() const LOOP_ONLY { return dialing_for_; }
  // Must be called when that dial ends; `fault`: nullptr if it succeeded.
  void dial_ended(std::uint64_t attempt, const Fault* fault) LOOP_ONLY;
  // Drops the failed warm-ups of origins that the configuration no longer warms up. Must be called periodically.
  void sweep() LOOP_ONLY;

  // ---- any thread ----
  // Returns the result of the warm-up with this number of begin(); nullopt while it is running. A result is kept for at
  // least a minute; without one, an empty result is returned.
  std::optional<WarmUpResult> result(std::uint64_t number);
  // Returns the origins that are being warmed up at start; failed(): those whose warm-up failed, with the reason.
  std::vector<std::string> under_way() const;
  std::vector<std::string> failed() const;

 private:
  struct WarmUpJob {
    std::uint64_t number = 0;
    // Each step looks up the runtime, because a failed warm-up at start may outlast it.
    pool::Origin origin;
    std::string label;
    std::uint64_t attempt = 0;  // number of the current or last try, which distinguishes its dials from earlier ones
    std::uint32_t dials = 0;    // in progress
    WarmUpResult result;        // guarded by mutex_
    Instant until{};            // deadline; after a failure the time of the next try
    Duration pause{};           // pause before the next try
    bool at_start = false;
    bool over = false;      // guarded by mutex_
    bool first_try = true;  // guarded by mutex_
  };
  void dial_more(WarmUpJob& job, std::uint32_t limit) LOOP_ONLY;
  void end(WarmUpJob& job) LOOP_ONLY;
  void try_once(WarmUpJob& job) LOOP_ONLY;
  std::uint32_t wanted_at_start(std::string_view label) const LOOP_ONLY;
  void on_timer();
  void arm() LOOP_ONLY;
  void notify_ready() LOOP_ONLY;

  exec::Loop& loop_;
  OriginRegistry& origins_;
  const ConfigInForce& config_;
  Host& host_;
  exec::Timer timer_;
  bool starting_ = false;          // start() has begun all warm-ups, and on_warm() was not called yet
  std::uint64_t dialing_for_ = 0;  // the attempt whose dials are beginning
  mutable Mutex mutex_;
  std::list<WarmUpJob> jobs_;  // changed by the loop only, under mutex_; other threads read it under mutex_
  std::uint64_t last_ = 0;
};

}  // namespace carpool::proxy
