#include "proxy/upstream/health/health_check.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "pool/destination/snapshot.h"
#include "proxy/telemetry/log.h"
#include "proxy/upstream/origin/origin_registry.h"
#include "proxy/upstream/upstream_context.h"

namespace carpool::proxy {

namespace {
constexpr std::size_t kAtOnce = 4;                          // concurrent probes of one loop
constexpr Duration kOften = std::chrono::milliseconds(50);  // minimum tick interval
constexpr Duration kSeldom = std::chrono::seconds(1);       // maximum tick interval, because origins come and go

// IdleVisitor: collects the connections that have been idle on one loop since `idle_for` or longer.
class IdleVisitor final : public pool::ConnectionVisitor {
 public:
  IdleVisitor(LoopId home, Duration idle_for) : home_(home), idle_connections_(idle_for) {}
  void visit(const pool::ConnectionView& view) override {
    const bool idle = view.state == pool::ConnectionStatus::idle && view.pooled != nullptr;
    if (idle && view.home == home_ && view.idle >= idle_connections_) found.emplace_back(view.index, view.generation);
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> found;

 private:
  const LoopId home_;
  const Duration idle_connections_;
};
}  // namespace

HealthCheck::HealthCheck(const UpstreamContext& context)
    : context_(context),
      timer_(exec::Timer::bind<&HealthCheck::tick>(context.loop, *this)),
      random_(Random::kSeed * (std::uint64_t{context.loop.id()} + 1)) {}

HealthCheck::~HealthCheck() {
  CARPOOL_ASSERT(asking_.empty());
}

void HealthCheck::start() {
  timer_.arm(context_.loop.now() + kOften);
}

void HealthCheck::stop() {
  timer_.disarm();
  to_ask_.clear();
  while (!asking_.empty()) {
    const std::unique_ptr<Probe> dies(&asking_.pop_front());
    dies->end(pool::CloseCause::shutdown);
  }
  asked_ = 0;
}

void HealthCheck::forget(const std::vector<pool::Destination*>& leaving) {
  const auto is_removed = [&](const OriginRuntime& origin) {
    return std::binary_search(leaving.begin(), leaving.end(), origin.destination, std::less<>());
  };
  std::erase_if(due_, [&](const auto& one) { return is_removed(*one.first); });
  std::erase_if(to_ask_, [&](const Candidate& one) { return is_removed(*one.origin); });
}

void HealthCheck::tick() {
  exec::assume_on_loop();
  const Instant now = context_.loop.now();
  Duration next = kSeldom;
  for (OriginRuntime* origin : context_.origins.all()) {
    const config::HealthCheck& settings = origin->pool.health_check;
    if (!settings.enabled) continue;
    next = std::min(next, settings.interval / 8);
    const auto [due, is_new] = due_.try_emplace(origin, now + jittered(settings.interval));
    if (is_new || due->second > now) continue;
    due->second = now + jittered(settings.interval);
    check(*origin, now);
  }
  ask_some(now);
  timer_.arm(now + std::max(next, kOften));
}

// Adds or subtracts up to 10 %, so that the loops of many sidecars do not probe an origin in step.
Duration HealthCheck::jittered(Duration interval) {
  return interval / 1000 * static_cast<Duration::rep>(900 + random_.below(201));
}

// Half an interval is the minimum idle time: a connection that became idle right after a round is checked in the next
// one.
void HealthCheck::check(OriginRuntime& origin, Instant now) {
  const bool behind =
      std::any_of(to_ask_.begin(), to_ask_.end(), [&](const Candidate& one) { return one.origin == &origin; });
  if (behind) return;  // the previous round is not over; a slow origin is not probed more often
  IdleVisitor idle(context_.loop.id(), origin.pool.health_check.interval / 2);
  origin.destination->visit(idle, now);
  const bool ask = !origin.pool.health_check.probe.empty();
  for (const auto& [index, generation] : idle.found) {
    if (ask) {
      to_ask_.push_back({&origin, index, generation});
    } else {
      check_one({&origin, index, generation}, now);
    }
  }
}

void HealthCheck::check_one(const Candidate& candidate, Instant now) {
  const pool::EventClaim claim = pool::claim_event(candidate.index, candidate.generation, context_.loop.id());
  if (claim.kind != pool::EventClaim::Kind::inspecting) return;  // borrowed or closed meanwhile
  net::Transport& transport = static_cast<Connection&>(*claim.pooled).transport();
  if (!transport.hangup_seen() && transport.no_data_pending()) return pool::keep_inspected(candidate.index, now);
  pool::close_inspected(candidate.index, pool::CloseCause::unhealthy, now);
}

void HealthCheck::ask_some(Instant now) {
  if (std::exchange(filling_, true)) return;  // called from start(); the loop below continues
  while (asked_ < kAtOnce && !to_ask_.empty()) {
    const Candidate candidate = to_ask_.front();
    to_ask_.pop_front();
    pool::Lease lease = candidate.origin->destination->lease_idle(candidate.index, candidate.generation, now);
    if (!lease) continue;
    Probe& probe = *std::make_unique<Probe>(context_, *this, *candidate.origin, std::move(lease)).release();
    asking_.push_back(probe);  // owned by asking_ until probed() or stop()
    ++asked_;
    probe.start();
  }
  filling_ = false;
}

void HealthCheck::probed(Probe& probe, std::string_view why) {
  probe.unlink();
  const std::unique_ptr<Probe> dies(&probe);
  --asked_;
  if (!why.empty()) {
    log::info("health", "an idle connection failed its health check and was closed",
              {{"origin", dies->origin().destination->label()}, {"connection", dies->connection_id()}, {"why", why}});
  }
  ask_some(context_.loop.now());
}

}  // namespace carpool::proxy
