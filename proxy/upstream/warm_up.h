// WarmUp: opens connections before somebody asks for them: at start for the origins of the configuration, and on an
// operator's order. The first dial goes alone: an origin that cannot be reached costs one failure, not many. Each ends
// within connect_timeout. At start the program is ready when all have ended, well or not; one that failed is named in
// /readyz and tried again, less and less often, without making the program unready.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "exec/loop.h"
#include "exec/timer.h"
#include "proxy/upstream/origin/origin_registry.h"

namespace carpool::proxy {

class ConfigInForce;

struct WarmUpResult {
  std::uint32_t made = 0;
  std::optional<std::string> failure;  // the first one
};

class WarmUp {
 public:
  class Host {
   public:
    virtual void on_warm() LOOP_ONLY = 0;  // once: those of the configuration have ended

   protected:
    ~Host() = default;
  };

  WarmUp(exec::Loop& loop, OriginRegistry& origins, const ConfigInForce& config, Host& host);

  // ---- on `loop`, the first worker's ----
  void start() LOOP_ONLY;  // the host may hear of the end from inside
  // Until `open` connections of `origin` are open. The number names the order; ask result() for it.
  std::uint64_t begin(OriginRuntime& origin, std::uint32_t open, bool at_start = false) LOOP_ONLY;
  // A dial of cause warm_up ended.
  void dial_ended(const pool::Destination& destination, const Fault* fault) LOOP_ONLY;

  // ---- any thread ----
  // Returns the result of a finished warm-up once; nullopt while it is running.
  std::optional<WarmUpResult> result(std::uint64_t order);
  // Origins that are being warmed up at start, and those whose warm-up failed, with the reason.
  std::vector<std::string> under_way() const;
  std::vector<std::string> failed() const;

 private:
  struct WarmUpJob {
    std::uint64_t number = 0;
    OriginRuntime* origin = nullptr;
    std::uint32_t open = 0;  // wanted
    std::uint32_t out = 0;   // dials under way
    WarmUpResult result;     // guarded by mutex_
    Instant until{};         // given up then; or tried again then, once it has failed
    Duration pause{};        // before the next try
    bool at_start = false;
    bool over = false;      // guarded by mutex_
    bool first_try = true;  // guarded by mutex_
  };
  void dial_more(WarmUpJob& order, std::uint32_t most) LOOP_ONLY;
  void end(WarmUpJob& order) LOOP_ONLY;
  void try_again(WarmUpJob& order, Instant now) LOOP_ONLY;
  void on_timer();
  void arm() LOOP_ONLY;
  void notify_ready() LOOP_ONLY;

  exec::Loop& loop_;
  OriginRegistry& origins_;
  const ConfigInForce& config_;
  Host& host_;
  exec::Timer timer_;
  bool starting_ = false;  // start() was called, and on_warm() not yet
  mutable std::mutex mutex_;
  std::list<WarmUpJob> orders_;  // changed by the loop under mutex_, read by others under it
  std::uint64_t last_ = 0;
};

}  // namespace carpool::proxy
