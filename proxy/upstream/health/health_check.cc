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
constexpr std::size_t kMaxProbes = 4;                         // concurrent probes of one loop
constexpr Duration kMinTick = std::chrono::milliseconds(50);  // minimum tick interval
constexpr Duration kMaxTick = std::chrono::seconds(1);        // maximum tick interval, because origins come and go

// IdleVisitor: collects the connections that have been idle on one loop for `min_idle_time` or longer.
class IdleVisitor final : public pool::ConnectionVisitor {
 public:
  IdleVisitor(LoopId home, Duration min_idle_time) : home_(home), min_idle_time_(min_idle_time) {}
  void visit(const pool::ConnectionView& view) override {
    const bool idle = view.state == pool::ConnectionStatus::idle && view.pooled != nullptr;
    if (idle && view.home == home_ && view.idle >= min_idle_time_) found.emplace_back(view.index, view.generation);
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> found;

 private:
  const LoopId home_;
  const Duration min_idle_time_;
};
}  // namespace

HealthCheck::HealthCheck(const UpstreamContext& context)
    : context_(context),
      timer_(exec::Timer::bind<&HealthCheck::tick>(context.loop, *this)),
      random_(Random::kSeed * (std::uint64_t{context.loop.id()} + 1)) {}

HealthCheck::~HealthCheck() {
  CARPOOL_ASSERT(probes_.empty());
}

void HealthCheck::start() {
  timer_.arm(context_.loop.now() + kMinTick);
}

void HealthCheck::stop() {
  timer_.disarm();
  candidates_.clear();
  while (!probes_.empty()) {
    const std::unique_ptr<Probe> dies(&probes_.pop_front());
    dies->end(pool::CloseCause::shutdown);
  }
  probe_count_ = 0;
}

void HealthCheck::forget(const std::vector<pool::Destination*>& leaving) {
  const auto is_removed = [&](const OriginRuntime& origin) {
    return std::binary_search(leaving.begin(), leaving.end(), origin.destination, std::less<>());
  };
  std::erase_if(due_, [&](const auto& one) { return is_removed(*one.first); });
  std::erase_if(candidates_, [&](const Candidate& one) { return is_removed(*one.origin); });
}

void HealthCheck::tick() {
  exec::assume_on_loop();
  const Instant now = context_.loop.now();
  Duration next = kMaxTick;
  for (OriginRuntime* origin : context_.origins.all()) {
    const config::HealthCheck& settings = origin->pool.health_check;
    if (!settings.enabled) continue;
    next = std::min(next, settings.interval / 8);
    const auto [due, is_new] = due_.try_emplace(origin, now + jittered(settings.interval));
    if (is_new || due->second > now) continue;
    due->second = now + jittered(settings.interval);
    check(*origin, now);
  }
  start_probes(now);
  timer_.arm(now + std::max(next, kMinTick));
}

// Adds or subtracts up to 10 %, so that the loops of many sidecars do not probe an origin in step.
Duration HealthCheck::jittered(Duration interval) {
  return interval / 1000 * static_cast<Duration::rep>(900 + random_.below(201));
}

// Half an interval is the minimum idle time: a connection that became idle right after a round is checked in the next
// one.
void HealthCheck::check(OriginRuntime& origin, Instant now) {
  const bool behind =
      std::any_of(candidates_.begin(), candidates_.end(), [&](const Candidate& one) { return one.origin == &origin; });
  if (behind) return;  // the previous round is not over; a slow origin is not probed more often
  IdleVisitor idle(context_.loop.id(), origin.pool.health_check.interval / 2);
  origin.destination->visit(idle, now);
  // A tunnel carries the bytes of its client alone.
  const bool probes =
      !origin.pool.health_check.probe.empty() && origin.destination->origin().scheme != pool::Scheme::tcp;
  for (const auto& [index, generation] : idle.found) {
    if (probes) {
      candidates_.push_back({&origin, index, generation});
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

void HealthCheck::start_probes(Instant now) {
  if (std::exchange(starting_probes_, true)) return;  // called from start(); the loop below continues
  while (probe_count_ < kMaxProbes && !candidates_.empty()) {
    const Candidate candidate = candidates_.front();
    candidates_.pop_front();
    pool::Lease lease = candidate.origin->destination->lease_idle(candidate.index, candidate.generation, now);
    if (!lease) continue;
    Probe& probe = *std::make_unique<Probe>(context_, *this, *candidate.origin, std::move(lease)).release();
    probes_.push_back(probe);  // owned by probes_ until probed() or stop()
    ++probe_count_;
    probe.start();
  }
  starting_probes_ = false;
}

void HealthCheck::probed(Probe& probe, std::string_view why) {
  probe.unlink();
  const std::unique_ptr<Probe> dies(&probe);
  --probe_count_;
  if (!why.empty()) {
    log::info("health", "an idle connection failed its health check and was closed",
              {{"origin", dies->origin().destination->label()}, {"connection", dies->connection_id()}, {"why", why}});
  }
  start_probes(context_.loop.now());
}

}  // namespace carpool::proxy
