#include "proxy/upstream/health/address_monitor.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "proxy/net/address_set.h"
#include "proxy/net/parent_proxy.h"
#include "proxy/telemetry/log.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/origin/origin_registry.h"
#include "proxy/upstream/retire_outdated.h"
#include "proxy/upstream/upstream_context.h"

namespace carpool::proxy {

namespace {
constexpr Duration kEvery = std::chrono::seconds(1);
constexpr Duration kGoOn = std::chrono::milliseconds(100);  // interval while connections remain to be closed

// Returns the origin that connections lead to: the parent proxy, or the origin itself.
const pool::Origin& dialed_place(const OriginRuntime& origin) {
  return origin.parent != nullptr ? origin.parent->place : origin.destination->origin();
}
}  // namespace

// Query: the periodic DNS query for one origin.
class AddressMonitor::Query final : public dns::Question {
 public:
  Query(const OriginRuntime& origin, const exec::Loop& loop) : origin_(origin), loop_(loop) {}
  void on_addresses(Result<std::vector<net::Address>> addresses) override LOOP_ONLY {
    if (!addresses || addresses->empty()) return;  // no result: the addresses stay
    const std::uint16_t port = dialed_place(origin_).port;
    if (!origin_.address_set->learn(net::with_default_port(std::move(*addresses), port), loop_.now())) return;
    log::info(
        "dns", "the addresses of an origin changed",
        {{"origin", origin_.destination->label()}, {"addresses", origin_.address_set->count(loop_.now()).usable}});
  }

 private:
  const OriginRuntime& origin_;
  const exec::Loop& loop_;
};

std::vector<LoggedEjections::Ejection> LoggedEjections::update(const net::AddressSet& addresses, Instant now) {
  std::vector<Ejection> fresh;
  std::unordered_map<std::string, std::uint32_t> logged;
  for (net::AddressSet::Info& one : addresses.all(now)) {
    const auto before = logged_.find(one.address);
    const std::uint32_t known = before == logged_.end() ? 0 : before->second;
    logged.emplace(one.address, one.ejections);
    if (one.ejected && one.ejections != known) fresh.push_back({std::move(one.address), one.ejections});
  }
  logged_ = std::move(logged);  // an address that the set has dropped starts over
  return fresh;
}

AddressMonitor::AddressMonitor(const UpstreamContext& context, dns::Resolver& resolver)
    : context_(context), resolver_(resolver), timer_(exec::Timer::bind<&AddressMonitor::tick>(context.loop, *this)) {}

AddressMonitor::~AddressMonitor() = default;

void AddressMonitor::start() {
  timer_.arm(context_.loop.now() + kEvery);
}

void AddressMonitor::stop() {
  timer_.disarm();
  watched_.clear();
}

void AddressMonitor::forget(const std::vector<pool::Destination*>& leaving) {
  std::erase_if(watched_, [&](const auto& one) {
    return std::binary_search(leaving.begin(), leaving.end(), one.second.destination, std::less<>());
  });
}

void AddressMonitor::tick() {
  exec::assume_on_loop();
  const Instant now = context_.loop.now();
  bool more = false;
  for (const OriginRuntime* origin : context_.origins.all()) {
    if (context_.first) follow(*origin, now);
    more |= retire(*origin, now);
  }
  timer_.arm(now + (more ? kGoOn : kEvery));
}

void AddressMonitor::follow(const OriginRuntime& origin, Instant now) {
  Watched& watched = watched_[origin.address_set];
  watched.destination = origin.destination;
  origin.address_set->review(now);
  query(origin, watched, now);
  log_ejections(origin, watched, now);
}

void AddressMonitor::query(const OriginRuntime& origin, Watched& watched, Instant now) {
  const pool::Origin& name = dialed_place(origin);
  if (!origin.address_set->in_use()) return;
  if (!origin.pinned.empty()) {
    origin.address_set->learn(net::with_default_port(origin.pinned, name.port), now);  // a reload may have changed them
    return;
  }
  if (net::Address::literal(name.host, 0)) return;
  if (watched.query && watched.query->linked()) return;  // the query is still pending
  watched.query = std::make_unique<Query>(origin, context_.loop);
  resolver_.ask(name.host, *watched.query);
}

void AddressMonitor::log_ejections(const OriginRuntime& origin, Watched& watched, Instant now) {
  const std::uint64_t more = origin.address_set->ejections() - watched.ejections;
  if (more == 0) return;
  watched.ejections += more;
  context_.stats.count_ejections(origin.slot, more);
  for (const LoggedEjections::Ejection& one : watched.logged.update(*origin.address_set, now)) {
    log::warn("net", "an address keeps failing and is ejected",
              {{"origin", origin.destination->label()}, {"address", one.address}, {"ejections", one.number}});
  }
}

// Returns true if connections remain to be closed.
bool AddressMonitor::retire(const OriginRuntime& origin, Instant now) {
  const bool unevenly = origin.address_set->needs_rebalance();
  if (unevenly) rebalance(*origin.destination, *origin.address_set, context_.loop.id(), now);
  if (!origin.address_set->has_retiring(now)) return unevenly;
  return retire_outdated(*origin.destination, context_.loop.id(), now) || unevenly;
}

}  // namespace carpool::proxy
