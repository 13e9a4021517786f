// CredentialFiles: follows the files that hold credentials of origins. Checks them every second, because a mounted
// secret changes by a symbolic link, which a watch on another directory would not report.
#pragma once

#include <memory>

#include "exec/periodic_task.h"
#include "proxy/upstream/origin/origin_registry.h"

namespace carpool::metrics {
class Registry;
}

namespace carpool::proxy {

class CredentialFiles final : private exec::PeriodicTask::Work {
 public:
  CredentialFiles(OriginRegistry& origins, metrics::Registry& metrics) : origins_(origins), metrics_(metrics) {}

  void start(exec::Loop& loop, exec::Executor& background);  // must be called before `loop` runs
  void stop() LOOP_ONLY {
    if (round_ != nullptr) round_->stop();
  }
  void end() { round_.reset(); }  // call when no round can run any more

 private:
  const char* name() const override { return "files of credentials"; }
  Duration postpone() override LOOP_ONLY;
  void work() override;

  OriginRegistry& origins_;
  metrics::Registry& metrics_;
  std::unique_ptr<exec::PeriodicTask> round_;
};

}  // namespace carpool::proxy
