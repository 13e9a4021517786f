// InterceptLeaves: the authority of the intercepted origins, and the certificates that it signs for them. Reads the
// authority at the start and with each reload, and signs anew well ahead of expiry, in the background.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "exec/periodic_task.h"
#include "proxy/config/config.h"
#include "proxy/downstream/intercepts.h"
#include "proxy/net/tls/authority.h"

namespace carpool::proxy {

class InterceptLeaves final : private exec::PeriodicTask::Work {
 public:
  explicit InterceptLeaves(Intercepts& intercepts) : intercepts_(intercepts) {}

  // The result of all that can fail; nothing of it is in force yet.
  struct Plan {
    std::unique_ptr<tls::Authority> authority;  // nullptr: no origin is intercepted
    Intercepts::Leaves leaves;
    bool tunnels_after_refusal = true;
  };
  // Signs what is new, or everything if the authority's files changed. The Fault names the file or the origin, and the
  // reason. Blocking.
  Result<Plan> prepare(const config::Config& config) const;
  void apply(Plan plan);

  // Begins to renew. Must be called before `loop` runs.
  void start(exec::Loop& loop, exec::Executor& background);
  void stop() LOOP_ONLY {
    if (renewal_ != nullptr) renewal_->stop();
  }
  void end() { renewal_.reset(); }  // no round runs any more

 private:
  const char* name() const override { return "certificates of intercepted origins"; }
  void work() override;

  Intercepts& intercepts_;
  mutable std::mutex mutex_;  // guards what follows
  std::unique_ptr<tls::Authority> authority_;
  Intercepts::Leaves leaves_;
  bool tunnels_after_refusal_ = true;
  tls::Authority::WallTime renew_at_{};
  std::unique_ptr<exec::PeriodicTask> renewal_;
};

}  // namespace carpool::proxy
