// Ticker: prints one line each second that summarises the pools.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/result.h"
#include "proxy/commands/demo/stop_signal.h"

namespace carpool::proxy {

// DemoNumbers: totals over all origins since the start.
struct DemoNumbers {
  std::uint64_t requests = 0;    // leases granted
  std::uint64_t opened = 0;      // connections to origins
  std::uint64_t pools = 0;       // pools that exist now
  std::uint64_t handshakes = 0;  // TLS handshakes that reuse saved
  std::uint64_t waiting = 0;     // requests that wait now
  std::uint64_t failed = 0;      // requests of the traffic without a 200
};

// Returns a text such as "requests 20/s  failed 0/s  waiting 0  |  reuse 97.5 %  opened 4  saved 156 connections, 104
// TLS handshakes": rates of the interval before the bar, totals since the start after it. `saved` counts requests that
// opened no connection.
std::string demo_line(const DemoNumbers& before, const DemoNumbers& now, Duration between);

class Ticker {
 public:
  static Result<std::unique_ptr<Ticker>> start(std::function<DemoNumbers()> numbers, std::FILE* out,
                                               Duration every = std::chrono::seconds(1));
  Ticker(StopSignal stop, std::function<DemoNumbers()> numbers, std::FILE* out, Duration every);  // for start()
  ~Ticker();                                                                                      // stops at once
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  void run() const;

  const StopSignal stop_;
  const std::function<DemoNumbers()> numbers_;
  std::FILE* const out_;
  const Duration every_;
  std::thread thread_;
};

}  // namespace carpool::proxy
