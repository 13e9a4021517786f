// OverloadMonitor: samples memory and descriptors four times a second, on the admin thread, and sets the shed level. A
// failed allocation counts as all memory in use. At level `idle` it posts a message to every loop, once per sample, to
// close idle connections; the loops apply the other levels themselves.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/coalesced_mail.h"
#include "exec/timer.h"
#include "proxy/exchange/load_shedding.h"
#include "proxy/server/worker.h"

namespace carpool::proxy {

class ConfigInForce;
class OverloadState;

class OverloadMonitor {
 public:
  OverloadMonitor(exec::Loop& loop, OverloadState& overload, const ConfigInForce& config, pool::Directory& pools,
                  const Workers& workers);  // the loops must not run yet
  ~OverloadMonitor();                       // no message of it may be posted any more
  void stop() { timer_.reset(); }           // before the admin loop is destroyed

 private:
  // IdleCloser: closes idle connections of one worker, on its loop. Posted without an allocation, because memory may be
  // short.
  class IdleCloser final {
   public:
    IdleCloser(pool::Directory& pools, const Worker::Parts& worker, bool closes_upstream)
        : pools_(pools),
          worker_(worker),
          closes_upstream_(closes_upstream),
          mail_(worker.loop, exec::Bound::to<&IdleCloser::close_idle>(*this)) {}
    void send() { mail_.post(); }

   private:
    void close_idle();
    void close_idle_upstream() LOOP_ONLY;
    pool::Directory& pools_;
    const Worker::Parts& worker_;
    const bool closes_upstream_;
    exec::CoalescedMail mail_;
  };
  void sample();
  bool memory_failed(Instant now);
  void log_change(ShedLevel before, ShedLevel now) const;

  exec::Loop& loop_;
  OverloadState& overload_;
  const ConfigInForce& config_;
  ShedLevel logged_ = ShedLevel::nothing;  // last level logged
  std::uint64_t failures_seen_ = 0;        // allocations served by the reserve
  Instant memory_short_until_{};
  std::unique_ptr<exec::Timer> timer_;
  std::vector<std::unique_ptr<IdleCloser>> idle_closers_;
};

}  // namespace carpool::proxy
