// Demo: the parts of `carpool --demo` besides the server. It must be created before the server, whose configuration
// refers to the demo's origin; started when the server listens; and stopped before the server is destroyed.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "proxy/commands/demo/demo_origin.h"
#include "proxy/commands/demo/keyboard.h"
#include "proxy/commands/demo/ticker.h"
#include "proxy/commands/demo/traffic.h"
#include "proxy/config/config.h"
#include "proxy/net/address.h"

namespace carpool::proxy {

// Returns the settings of the demo, with its origin under three names. Listener and admin address are the usual ones if
// their ports are free, otherwise any free port. `config`: the settings to begin with; a port of them that is in use is
// replaced by a free one.
config::Config demo_config(const DemoOrigin& origin, config::Config config = {});
// Returns `address` if its port is free now, otherwise a free port of 127.0.0.1.
std::string free_or_any_port(const std::string& address);

class Demo {
 public:
  // Starts the origin.
  static Result<std::unique_ptr<Demo>> make(std::FILE* out = stdout);
  Demo(std::unique_ptr<DemoOrigin> origin, std::FILE* out);  // for make()
  ~Demo() = default;
  Demo(const Demo&) = delete;
  Demo& operator=(const Demo&) = delete;

  const config::Config& config() const { return config_; }  // outlives the server that is built from it
  const DemoOrigin& origin() const { return *origin_; }

  // Prints the addresses and commands to try, then starts the traffic and prints a line each second. Calls `numbers` on
  // a thread of the demo until stop() has returned.
  Status start(const net::Address& listener, const net::Address& admin, std::function<DemoNumbers()> numbers);
  void stop();

 private:
  std::unique_ptr<DemoOrigin> origin_;
  const config::Config config_;
  std::FILE* const out_;
  std::unique_ptr<DemoTraffic> traffic_;
  std::unique_ptr<Ticker> ticker_;
  std::unique_ptr<Keyboard> keyboard_;
};

// Returns the text that start() prints.
std::string demo_greeting(const net::Address& listener, const net::Address& admin, const DemoOrigin& origin);

// Runs `carpool --demo`: the demo beside an ordinary server. Returns the exit code.
int serve_demo();

}  // namespace carpool::proxy
