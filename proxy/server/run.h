// serve: the life of the program once its configuration is good: build the house, say that it is ready, run until told
// to stop. Answers the exit code of the contract.
#pragma once

#include <optional>

#include "proxy/config/config.h"
#include "proxy/config/options.h"

namespace carpool::proxy {

class House;

// `options`: where the configuration came from, so that it can be read again.
int serve(const config::Config& config, const config::Options& options);
int serve_demo();

// Somebody who lives beside the house: told when it listens, before it runs, and when it has stopped running.
class Guest {
 public:
  virtual void on_ready(House& house) = 0;
  virtual void on_stopped() = 0;

 protected:
  ~Guest() = default;
};
int serve_with(const config::Config& config, std::optional<config::Options> source, Guest* guest);

}  // namespace carpool::proxy
