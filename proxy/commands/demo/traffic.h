// DemoTraffic: a few clients that send mixed requests through the demo's listener: about twenty a second, and
// occasionally all of them together, which needs more connections than the steady load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "proxy/commands/demo/load_client.h"
#include "proxy/commands/demo/stop_signal.h"
#include "proxy/net/address.h"

namespace carpool::proxy {

class DemoTraffic {
 public:
  struct Settings {
    Duration pace = std::chrono::milliseconds(50);  // between two requests
    std::size_t clients = 4;
  };
  struct Counts {
    std::uint64_t answered = 0;
    std::uint64_t failed = 0;
  };
  static Result<std::unique_ptr<DemoTraffic>> start(const net::Address& proxy, const Settings& settings);
  static Result<std::unique_ptr<DemoTraffic>> start(const net::Address& proxy) { return start(proxy, Settings{}); }

  DemoTraffic(StopSignal stop, const net::Address& proxy, const Settings& settings);  // for start()
  ~DemoTraffic();                                                                     // stops at once
  DemoTraffic(const DemoTraffic&) = delete;
  DemoTraffic& operator=(const DemoTraffic&) = delete;

  Counts counts() const;  // any thread

 private:
  void run();
  void send_next();
  void send(LoadClient& client, const LoadRequest& load_request);
  void count(LoadClient::Outcome outcome);

  const Settings settings_;
  const StopSignal stop_;
  std::deque<LoadClient> clients_;  // used only by the thread, like the next two
  std::uint64_t turn_ = 0;
  std::size_t next_client_ = 0;
  mutable Mutex mutex_;
  Counts counts_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace carpool::proxy
