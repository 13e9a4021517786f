// serve(): runs the server with a checked configuration: builds it, reports readiness, and runs until it is stopped.
// Returns the exit code.
#pragma once

#include <optional>

#include "proxy/config/config.h"
#include "proxy/config/options.h"

namespace carpool::proxy {

class Server;

// `options`: the origin of the configuration, from which a reload reads it again.
int serve(const config::Config& config, const config::Options& options);

// LifecycleListener: callbacks for code that embeds the server: after listening, before run(); and after run()
// returned.
class LifecycleListener {
 public:
  virtual void on_ready(Server& server) = 0;
  virtual void on_stopped() = 0;

 protected:
  ~LifecycleListener() = default;
};
int serve_with(const config::Config& config, std::optional<config::Options> source, LifecycleListener* listener);

}  // namespace carpool::proxy
