// Exchange, pauses requested by the origin: after 429 or 503 with Retry-After the requests in its wait queue are held
// until that time (pool.cool_down).
#include <algorithm>

#include "proxy/exchange/exchange.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/http/retry_after.h"
#include "proxy/telemetry/log.h"
#include "proxy/upstream/origin/origin_registry.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

// Records the head of a final response. The origin has responded, whatever happens to the response.
void Exchange::record_response_in_pool(pool::Lease& lease, const http::ResponseHead& head, Instant leased) {
  if (info_.origin->pool.auto_size()) lease.note_response(head.status, context_.loop.now() - leased);
  if (lease.trial() || info_.origin->pool.cool_down) follow_cool_down(lease, head);
}

// Evaluates the head of a final response. A response without a valid Retry-After holds nothing, because no default is
// assumed.
void Exchange::follow_cool_down(pool::Lease& lease, const http::ResponseHead& head) {
  const Instant now = context_.loop.now();
  pool::Destination& destination = lease.destination();
  if (head.status == 429 || head.status == 503) {
    const auto wall = std::chrono::floor<std::chrono::seconds>(context_.wall_clock());
    if (const std::optional<Duration> wait = http::retry_after(head.fields, wall)) {
      if (begin_cool_down(destination, *wait, head.status)) {
        log::warn("pool", "the origin asked for a pause with Retry-After: its requests wait",
                  {{"origin", destination.label()},
                   {"status", std::uint64_t{head.status}},
                   {"seconds", std::chrono::duration<double>(destination.cooling(now).value_or(Duration())).count()}});
      }
      return;
    }
  }
  pass_trial(lease);
}

// Also holds the pool in force if a reload has replaced this one. A reload marks the pool as replaced and then copies
// its pause under its mutex, so a pause that begins before the mark is copied, and one that begins after it is repeated
// here. Another reload may take the replaced pool into use again and give it the pause of its successor, so the pool in
// force may be the same one.
bool Exchange::begin_cool_down(pool::Destination& destination, Duration wait, std::uint16_t status) {
  const Instant now = context_.loop.now();
  const bool was_replaced = info_.origin->is_replaced();
  const bool began = destination.cool_down(wait, status, now);
  if (!was_replaced && !info_.origin->is_replaced()) return began;
  const Result<OriginRuntime*> in_force = context_.origins.at(destination.origin());
  if (!in_force) return began;
  const bool also_there = (*in_force)->destination->cool_down(wait, status, now);
  return (*in_force)->destination == &destination ? began || also_there : also_there;
}

// Reports that the trial request, sent before the others, has a response.
void Exchange::pass_trial(pool::Lease& lease) {
  if (!lease.pass_trial(context_.loop.now())) return;
  log::info("pool", "the origin's pause is over: its requests are sent again",
            {{"origin", lease.destination().label()}});
}

// Completes the fault of a request that waited. The reply gives the remaining time of the origin's pause (Retry-After).
void Exchange::add_retry_after(Fault& fault) const {
  const pool::Destination& destination = *info_.origin->destination;
  const std::optional<Duration> left = destination.cooling(context_.loop.now());
  if (!left || destination.paused()) return;
  fault.detail = pool::kCoolingDown;
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(*left).count();
  fault.retry_after = static_cast<std::uint32_t>(std::max<std::int64_t>(seconds, 1));
}

}  // namespace carpool::proxy
