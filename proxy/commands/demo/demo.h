// Demo: everything of `carpool --demo` around the house. Made before it, because the house's configuration points at
// the demo's origin; started when it listens; stopped before it is taken down.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "proxy/commands/demo/demo_origin.h"
#include "proxy/commands/demo/ticker.h"
#include "proxy/commands/demo/traffic.h"
#include "proxy/config/config.h"
#include "proxy/net/address.h"

namespace carpool::proxy {

// The defaults, with the demo's origin behind two names. The listener and the admin address are the usual ones where
// these are free, else any free port.
config::Config demo_config(const DemoOrigin& origin);
// `address` if one could listen there now, else any port of 127.0.0.1.
std::string free_or_any_port(const std::string& address);

class Demo {
 public:
  // The origin serves from here on.
  static Result<std::unique_ptr<Demo>> make(std::FILE* out = stdout);
  Demo(std::unique_ptr<DemoOrigin> origin, std::FILE* out);  // for make()
  ~Demo() = default;
  Demo(const Demo&) = delete;
  Demo& operator=(const Demo&) = delete;

  const config::Config& config() const { return config_; }  // outlives the house that is built from it
  const DemoOrigin& origin() const { return *origin_; }

  // Says what is where and what to try; from here on there is traffic, and each second a line. `numbers` is called on a
  // thread of the demo's own until stop() has returned.
  Status start(const net::Address& listener, const net::Address& admin, std::function<DemoNumbers()> numbers);
  void stop();

 private:
  std::unique_ptr<DemoOrigin> origin_;
  const config::Config config_;
  std::FILE* const out_;
  std::unique_ptr<DemoTraffic> traffic_;
  std::unique_ptr<Ticker> ticker_;
};

// What start() prints.
std::string demo_greeting(const net::Address& listener, const net::Address& admin, const DemoOrigin& origin);

}  // namespace carpool::proxy
