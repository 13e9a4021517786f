// carpool --demo: the demo's origin and traffic live beside an ordinary house.
#include <cstdio>
#include <memory>

#include "proxy/commands/demo/demo.h"
#include "proxy/server/run.h"
#include "proxy/server/server.h"

namespace carpool::proxy {

namespace {
class DemoGuest final : public Guest {
 public:
  explicit DemoGuest(Demo& demo) : demo_(demo) {}
  void on_ready(House& house) override {
    const Status started =
        demo_.start(house.listeners().front()->address(), *house.admin().address(), [&house] { return count(house); });
    if (!started) std::fprintf(stderr, "carpool: %s\n", started.fault().detail.c_str());
  }
  void on_stopped() override { demo_.stop(); }

 private:
  static DemoNumbers count(House& house) {
    DemoNumbers numbers;
    const Instant now = Clock::now();
    const auto held = house.origins().directory().hold();
    for (const pool::Destination* destination : house.origins().directory().all()) {
      const pool::Destination::Snapshot snapshot = destination->snapshot(now);
      numbers.requests += snapshot.borrows;
      numbers.opened += snapshot.opened_total();
      ++numbers.pools;
    }
    return numbers;
  }
  Demo& demo_;
};
}  // namespace

int serve_demo() {
  Result<std::unique_ptr<Demo>> demo = Demo::make();
  if (!demo) {
    std::fprintf(stderr, "carpool: %s\n", demo.fault().detail.c_str());
    return 3;
  }
  DemoGuest guest(**demo);
  return serve_with((*demo)->config(), std::nullopt, &guest);
}

}  // namespace carpool::proxy
