// serve: the life of the program once its configuration is good: build the house, say that it is ready, run until told
// to stop. Answers the exit code of the contract.
#pragma once

#include <optional>

#include "proxy/config/config.h"
#include "proxy/config/options.h"

namespace carpool::proxy {

class Server;

// `options`: where the configuration came from, so that it can be read again.
int serve(const config::Config& config, const config::Options& options);
int serve_demo();

// Somebody who lives beside the house: told when it listens, before it runs, and when it has stopped running.
class LifecycleListener {
 public:
  virtual void on_ready(Server& server) = 0;
  virtual void on_stopped() = 0;

 protected:
  ~LifecycleListener() = default;
};
int serve_with(const config::Config& config, std::optional<config::Options> source, LifecycleListener* listener);

}  // namespace carpool::proxy
