#include "proxy/upstream/warm_up.h"

#include <algorithm>
#include <utility>

#include "pool/destination/snapshot.h"
#include "proxy/config/in_force.h"
#include "proxy/telemetry/log.h"

namespace carpool::proxy {

namespace {
constexpr Duration kFirstPause = std::chrono::seconds(1);
constexpr Duration kMaxPause = std::chrono::minutes(1);
constexpr Duration kResultLifetime = std::chrono::minutes(1);

// Returns the number of connections that an origin has at start.
std::uint32_t wanted_by(const config::PoolSettings& pool) {
  return std::max(pool.warm_up.enabled ? pool.warm_up.size : 0, std::min(pool.min_idle, pool.largest()));
}
}  // namespace

WarmUp::WarmUp(exec::Loop& loop, OriginRegistry& origins, const ConfigInForce& config, Host& host)
    : loop_(loop),
      origins_(origins),
      config_(config),
      host_(host),
      timer_(exec::Timer::bind<&WarmUp::on_timer>(loop, *this)) {}

void WarmUp::start() {
  for (const config::OriginSettings& settings : config_.get().origins) {
    if (const std::uint32_t wanted = wanted_by(settings.pool); wanted != 0) begin(settings.origin, wanted, true);
  }
  starting_ = true;  // set last, because a warm-up may end before the next one begins
  notify_ready();
}

std::uint32_t WarmUp::wanted_at_start(std::string_view label) const {
  for (const config::OriginSettings& settings : config_.get().origins) {
    if (settings.origin.label() == label) return wanted_by(settings.pool);
  }
  return 0;
}

std::uint64_t WarmUp::begin(const pool::Origin& origin, std::uint32_t open, bool at_start) {
  const Instant now = loop_.now();
  WarmUpJob* job = nullptr;
  {
    const Held lock(mutex_);
    // Removes old results, which their callers will not fetch any more.
    jobs_.remove_if(
        [&](const WarmUpJob& old) { return old.over && !old.at_start && now - old.until > kResultLifetime; });
    job = &jobs_.emplace_back();
    job->number = ++last_;
    job->origin = origin;
    job->label = origin.label();
    job->result.requested = open;
    job->pause = kFirstPause;
    job->at_start = at_start;
  }
  const std::uint64_t number = job->number;
  try_once(*job);
  arm();
  return number;
}

// Begins with a single dial.
void WarmUp::try_once(WarmUpJob& job) {
  const Instant now = loop_.now();
  const Result<OriginRuntime*> origin = origins_.at(job.origin);
  {
    const Held lock(mutex_);
    job.attempt = ++last_;
    job.over = false;
    job.result.failure.reset();
    job.until = origin ? now + (*origin)->pool.connect_timeout : now;
  }
  dial_more(job, 1);
}

namespace {
std::string text_of(pool::WarmUpEnd why) {
  switch (why) {
    case pool::WarmUpEnd::complete:
      break;
    case pool::WarmUpEnd::paused:
      return pool::kPausedByOperator;
    case pool::WarmUpEnd::stopped:
      return "the pool has stopped";
    case pool::WarmUpEnd::no_slot:
      return "pool.total.max_connections is reached";
  }
  return {};
}
}  // namespace

// Starts at most `limit` of the missing dials. Ends the try if none is missing or none may start.
void WarmUp::dial_more(WarmUpJob& job, std::uint32_t limit) {
  const Result<OriginRuntime*> origin = origins_.at(job.origin);
  if (!origin) {
    const Held lock(mutex_);
    job.result.failure = origin.fault().detail;
  } else {
    const std::uint32_t open = std::min(job.result.requested, (*origin)->pool.largest());
    auto why = pool::WarmUpEnd::complete;
    dialing_for_ = job.attempt;
    job.dials = (*origin)->destination->warm_up(open, limit, loop_.now(), &why);
    dialing_for_ = 0;
    const std::uint32_t size = (*origin)->destination->snapshot(loop_.now()).size;
    const Held lock(mutex_);
    job.result.capped_at = job.result.requested > size ? std::optional(size) : std::nullopt;
    if (job.dials == 0 && why != pool::WarmUpEnd::complete) job.result.failure = text_of(why);
  }
  if (job.dials == 0) end(job);
}

void WarmUp::dial_ended(std::uint64_t attempt, const Fault* fault) {
  const auto mine = std::find_if(jobs_.begin(), jobs_.end(), [&](const WarmUpJob& job) {
    return !job.over && job.dials != 0 && job.attempt == attempt;
  });
  if (mine == jobs_.end()) return;  // the try has already ended at its deadline
  --mine->dials;
  {
    const Held lock(mutex_);
    if (fault == nullptr) ++mine->result.made;
    if (fault != nullptr && !mine->result.failure) mine->result.failure = fault->detail;
  }
  if (mine->dials != 0) return;
  if (mine->result.failure) return end(*mine);
  dial_more(*mine, UINT32_MAX);
}

void WarmUp::end(WarmUpJob& job) {
  const Instant now = loop_.now();
  {
    const Held lock(mutex_);
    job.over = true;
    if (job.result.failure) {
      log::warn("pool", "warm-up failed",
                {{"origin", job.label}, {"made", job.result.made}, {"why", *job.result.failure}});
      job.until = now + job.pause;
      job.pause = std::min(job.pause * 2, kMaxPause);
    } else {
      log::info("pool", "warmed up", {{"origin", job.label}, {"made", job.result.made}});
    }
    job.first_try = false;
    if (job.at_start && !job.result.failure) job.at_start = false;  // failed() and under_way() skip it
  }
  arm();
  notify_ready();
}

void WarmUp::sweep() {
  const Held lock(mutex_);
  jobs_.remove_if([&](WarmUpJob& job) LOOP_ONLY {
    if (!job.over || !job.at_start) return false;
    job.result.requested = wanted_at_start(job.label);
    return job.result.requested == 0;
  });
}

void WarmUp::on_timer() {
  exec::assume_on_loop();
  sweep();
  const Instant now = loop_.now();
  for (WarmUpJob& job : jobs_) {
    if (job.until > now) continue;
    if (!job.over) {
      {
        const Held lock(mutex_);
        if (!job.result.failure) job.result.failure = "connect_timeout passed";
      }
      job.dials = 0;
      end(job);
    } else if (job.at_start) {
      try_once(job);
    }
  }
  arm();
}

void WarmUp::arm() {
  Instant next = kNever;
  for (const WarmUpJob& job : jobs_) {
    if (!job.over || job.at_start) next = std::min(next, job.until);
  }
  timer_.arm(next);
}

void WarmUp::notify_ready() {
  if (!starting_ || !under_way().empty()) return;
  starting_ = false;
  host_.on_warm();
}

std::optional<WarmUpResult> WarmUp::result(std::uint64_t number) {
  const Held lock(mutex_);
  const auto mine =
      std::find_if(jobs_.begin(), jobs_.end(), [&](const WarmUpJob& job) { return job.number == number; });
  if (mine == jobs_.end()) return WarmUpResult{};
  if (!mine->over) return std::nullopt;
  return mine->result;
}

std::vector<std::string> WarmUp::under_way() const {
  const Held lock(mutex_);
  std::vector<std::string> all;
  for (const WarmUpJob& job : jobs_) {
    if (job.at_start && job.first_try) all.push_back(job.label);
  }
  return all;
}

std::vector<std::string> WarmUp::failed() const {
  const Held lock(mutex_);
  std::vector<std::string> all;
  for (const WarmUpJob& job : jobs_) {
    if (!job.at_start || job.first_try) continue;
    all.push_back(job.label + ": " + job.result.failure.value_or("trying again"));
  }
  return all;
}

}  // namespace carpool::proxy
