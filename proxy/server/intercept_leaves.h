// InterceptLeaves: the authority of the intercepted origins, and the certificates that it signs for them. Reads the
// authority at the start and with each reload, and renews them well before expiry, in the background.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "exec/periodic_task.h"
#include "metrics/sample.h"
#include "proxy/config/config.h"
#include "proxy/downstream/intercepts.h"
#include "proxy/net/tls/authority.h"

namespace carpool::proxy {

class InterceptLeaves final : private exec::PeriodicTask::Work {
 public:
  explicit InterceptLeaves(Intercepts& intercepts) : intercepts_(intercepts) {}

  struct Leaf {
    ListenerIdentity identity;  // nullptr: the certificate is not valid, and no other could be signed
    WallTime begin{}, end{};    // of its validity

    bool valid_at(WallTime now) const { return identity != nullptr && begin <= now && now < end; }
  };
  // Plan: the result of all steps that can fail; nothing of it is in force yet.
  struct Plan {
    std::unique_ptr<tls::Authority> authority;     // nullptr if no origin is intercepted
    std::uint64_t number = 0;                      // number of the authority; another authority has another number
    std::unordered_map<std::string, Leaf> leaves;  // by the label of the origin
    bool tunnels_after_refusal = true;
    bool replaces = false;  // the authority in force, by another one
  };
  // Signs new leaves, or all of them if the authority's files changed. The Fault names the file or the origin, and the
  // reason. Blocks.
  Result<Plan> prepare(const config::Config& config) const;
  void apply(Plan plan);

  // Starts the renewal. Must be called before `loop` runs.
  void start(exec::Loop& loop, exec::Executor& background);
  void stop() LOOP_ONLY {
    if (renewal_ != nullptr) renewal_->stop();
  }
  void end() { renewal_.reset(); }  // call when no round can run any more
  // Renews certificates with less than a third of their lifetime left at `now`, and those that are not valid, because
  // the clock may have been set back; drops the latter if no other can be signed. A certificate that cannot be signed
  // is tried again at the next call. Blocks.
  void renew(WallTime now);
  metrics::InterceptSample sample(WallTime now) const;
  // Returns those of an origin that is intercepted now.
  std::vector<metrics::RefusalSample> refusals_at(const std::string& label) const;

 private:
  const char* name() const override { return "certificates of intercepted origins"; }
  void work() override { renew(std::chrono::system_clock::now()); }
  bool renew(const std::string& label, Leaf& leaf, WallTime now) const REQUIRES(signing_);
  Result<Leaf> mint(const tls::Authority& authority, const std::string& host, WallTime now) const REQUIRES(signing_);
  void publish() REQUIRES(signing_);

  Intercepts& intercepts_;
  // Held while certificates are signed, which takes seconds for a thousand: no loop locks it. Locked before mutex_.
  mutable Mutex signing_;
  Plan in_force_ GUARDED_BY(signing_);
  mutable Mutex mutex_;  // of what a sample reads
  std::vector<Leaf> shown_ GUARDED_BY(mutex_);
  std::optional<WallTime> authority_end_ GUARDED_BY(mutex_);
  mutable std::uint64_t minted_ GUARDED_BY(mutex_) = 0, failed_ GUARDED_BY(mutex_) = 0;
  std::unique_ptr<exec::PeriodicTask> renewal_;
};

}  // namespace carpool::proxy
