#include "proxy/admin_view.h"

#include "proxy/config/options.h"
#include "proxy/config/print.h"
#include "proxy/house.h"
#include "proxy/log/log.h"
#include "proxy/upstream/connection.h"

namespace carpool::proxy {

namespace {
class Collector final : public pool::ConnectionVisitor {
 public:
  void visit(const pool::ConnectionView& view) override {
    admin::ConnectionFacts facts;
    facts.state = view.state;
    facts.opened = view.opened;
    facts.age = view.age;
    facts.idle = view.idle;
    facts.uses = view.uses;
    facts.loop = view.home;
    facts.protocol = "h1";
    if (view.pooled != nullptr) describe(static_cast<const Connection&>(*view.pooled), facts);
    all.push_back(std::move(facts));
  }
  std::vector<admin::ConnectionFacts> all;

 private:
  // Only what never changes in a connection: it is in use on its own loop meanwhile.
  static void describe(const Connection& connection, admin::ConnectionFacts& facts) {
    facts.id = connection.id();
    facts.local = connection.local();
    facts.peer = connection.peer();
    facts.tls_version = connection.security().version;
    facts.cipher = connection.security().cipher;
  }
};
}  // namespace

std::vector<admin::PoolFacts> HouseView::pools() const {
  const Instant now = Clock::now();
  std::vector<admin::PoolFacts> all;
  for (const pool::Destination* destination : house_.origins().directory().all()) {
    all.push_back({destination->label(), destination->snapshot(now), std::nullopt});
  }
  return all;
}

std::vector<admin::ConnectionFacts> HouseView::connections(const std::string& origin) const {
  Collector collector;
  for (const pool::Destination* destination : house_.origins().directory().all()) {
    if (destination->label() == origin) destination->visit(collector, Clock::now());
  }
  return std::move(collector.all);
}

const metrics::Registry* HouseView::registry() const {
  const bool wanted = house_.with_config([](const config::Config& config) { return config.metrics.enabled; });
  return wanted ? &house_.metrics() : nullptr;
}

std::optional<metrics::ExecSample> HouseView::exec() const {
  return house_.execution().sample();
}

admin::ThreadsFacts HouseView::threads() const {
  return house_.execution().facts();
}

std::uint64_t HouseView::log_dropped() const {
  return log::dropped();
}

metrics::BuildSample HouseView::build() const {
  return {std::string(config::version()), __VERSION__, CARPOOL_BUILD_TYPE};
}

std::vector<std::string> HouseView::not_ready() const {
  if (house_.drain().serving()) return {};
  return {"draining"};
}

std::string HouseView::config() const {
  return house_.with_config([](const config::Config& config) { return config::print_config(config); });
}

}  // namespace carpool::proxy
