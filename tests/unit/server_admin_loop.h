// A program and a loop for tests of the admin endpoint's connections: the test runs each turn of the loop.
#pragma once

#include <poll.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "exec/loop.h"
#include "exec/mailbox.h"
#include "exec/timer_heap.h"
#include "tests/unit/server_admin_support.h"

namespace carpool::proxy {

class Program final : public admin::AdminView {
 public:
  std::vector<admin::PoolInfo> pools() const override {
    if (out_of_memory) throw std::bad_alloc();
    if (meanwhile) std::exchange(meanwhile, nullptr)();
    std::vector<admin::PoolInfo> all(count);
    for (std::size_t i = 0; i < count; ++i) all[i].origin = "http://origin-" + std::to_string(i) + ".example";
    return all;
  }
  std::vector<LeakRecord> leaks() const override { return {}; }
  std::vector<admin::ConnectionInfo> connections(const std::string&) const override { return {}; }
  void name_borrowers(const std::string&, std::vector<admin::ConnectionInfo>&) const override {}
  std::optional<admin::PoolAnalysis> study(const std::string&) const override { return std::nullopt; }
  const metrics::Registry* registry() const override { return nullptr; }
  std::optional<metrics::ExecSample> exec() const override { return std::nullopt; }
  admin::ThreadsInfo threads() const override { return {}; }
  std::uint64_t log_dropped() const override { return 0; }
  metrics::BuildSample build() const override { return {}; }
  admin::OverloadInfo overload() const override { return {}; }
  metrics::AdminSample admin() const override { return {}; }
  std::vector<std::string> not_ready() const override { return {}; }
  std::vector<std::string> warm_ups_failed() const override { return {}; }
  std::string config(admin::ConfigFormat) const override { return {}; }

  std::size_t count = 500;  // of pools: a long response
  bool out_of_memory = false;
  mutable std::function<void()> meanwhile;  // once, while a response is produced
};

// A loop whose turns and clock the test controls.
class HandLoop final : public exec::Loop {
 public:
  LoopId id() const override { return 0; }
  Instant now() const override { return now_; }
  void arm(exec::Timer& timer, Instant deadline) override { timers_.arm(timer, deadline); }
  void disarm(exec::Timer& timer) override { timers_.remove(timer); }
  void defer(exec::Deferred&) override {}
  void post(exec::Mail& mail) override { static_cast<void>(mail_.push(mail)); }
  Result<exec::WatchKey> watch(int fd, exec::Watcher& watcher) override {
    fd_ = fd;
    watcher_ = &watcher;
    return exec::WatchKey{0, 1};
  }
  void unwatch(int, exec::WatchKey) override { watcher_ = nullptr; }
  Status watch_shared(int, std::uint32_t, std::uint32_t) override { return Done{}; }
  void unwatch_shared(int) override {}
  void set_shared_watcher(exec::SharedWatcher*) override {}
  std::span<char> scratch() override { return scratch_; }

  void turn() {
    exec::assume_on_loop();
    pollfd poll_pending{fd_, POLLIN | POLLOUT | POLLRDHUP, 0};
    if (watcher_ != nullptr && ::poll(&poll_pending, 1, 0) == 1) {
      const auto is = [&](int what) { return (poll_pending.revents & what) != 0; };
      watcher_->on_ready({is(POLLIN), is(POLLOUT), is(POLLRDHUP | POLLHUP | POLLERR)});
    }
    mail_.deliver(SIZE_MAX);
    timers_.run_due(now_);
  }
  void pass(Duration time) {
    now_ += time;
    turn();
  }

 private:
  Instant now_{std::chrono::hours(1)};
  exec::TimerHeap timers_;
  exec::Mailbox mail_;
  int fd_ = -1;
  exec::Watcher* watcher_ = nullptr;
  std::array<char, 16384> scratch_{};
};

}  // namespace carpool::proxy
