// serve_demo(): runs the demo beside an ordinary server.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "exec/uv/held_signals.h"
#include "pool/directory/directory.h"
#include "proxy/commands/demo/demo.h"
#include "proxy/config/exit_code.h"
#include "proxy/server/run.h"
#include "proxy/server/server.h"

namespace carpool::proxy {

namespace {
class DemoLifecycle final : public LifecycleListener {
 public:
  explicit DemoLifecycle(Demo& demo) : demo_(demo) {}
  void on_ready(Server& server) override {
    const Status started = demo_.start(server.listeners().front()->address(), *server.admin().address(),
                                       [&server] { return count(server); });
    if (!started) std::fprintf(stderr, "carpool: %s\n", started.fault().detail.c_str());
  }
  void on_stopped() override { demo_.stop(); }

 private:
  static DemoNumbers count(Server& server) {
    DemoNumbers numbers;
    const Instant now = Clock::now();
    const auto held = server.origins().directory().hold();
    for (const pool::Destination* destination : server.origins().directory().all()) {
      const pool::Destination::Snapshot snapshot = destination->snapshot(now);
      numbers.requests += snapshot.borrows;
      numbers.opened += snapshot.created;
      ++numbers.pools;
      numbers.waiting += snapshot.waiting;
      const bool tls = destination->label().starts_with("https:");
      if (tls) numbers.handshakes += snapshot.borrows - std::min(snapshot.created, snapshot.borrows);
    }
    return numbers;
  }
  Demo& demo_;
};
}  // namespace

int serve_demo() {
  const exec::HeldSignals held;  // the threads of the demo start before the server
  Result<std::unique_ptr<Demo>> demo = Demo::make();
  if (!demo) {
    std::fprintf(stderr, "carpool: %s\n", demo.fault().detail.c_str());
    return kExitInternal;
  }
  DemoLifecycle lifecycle(**demo);
  return serve_with((*demo)->config(), std::nullopt, &lifecycle);
}

}  // namespace carpool::proxy
