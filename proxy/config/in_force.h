// ConfigInForce: the current configuration of the process, and its replacement by a reload.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "proxy/config/config.h"

namespace carpool::proxy {

class ConfigInForce {
 public:
  explicit ConfigInForce(const config::Config& config)
      : config_(std::make_unique<config::Config>(config)), in_force_(config_.get()) {}

  // Returns a configuration that is valid for the turn on a worker's loop, and until the next reload on the admin loop.
  // acquire: pairs with replace().
  const config::Config& get() const { return *in_force_.load(std::memory_order_acquire); }
  // Must be called on the admin loop. Returns the old configuration: a worker may use it until its turn ends.
  std::unique_ptr<const config::Config> replace(std::unique_ptr<config::Config> fresh) {
    const Held lock(mutex_);
    in_force_.store(fresh.get(), std::memory_order_release);
    return std::exchange(config_, std::move(fresh));
  }
  // Must be called before another thread uses the configuration.
  template <class Work>
  auto with_mutable(Work work) {
    const Held lock(mutex_);
    return work(*config_);
  }
  // Calls work(config) while that configuration cannot be replaced. May be called on any thread.
  template <class Work>
  auto with(Work work) const {
    const Held lock(mutex_);
    return work(*config_);
  }

 private:
  mutable Mutex mutex_;  // around the replacement, and around with()
  std::unique_ptr<config::Config> config_ GUARDED_BY(mutex_);
  std::atomic<const config::Config*> in_force_;
};

}  // namespace carpool::proxy
