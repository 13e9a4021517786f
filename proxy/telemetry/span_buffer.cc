#include "proxy/telemetry/span_buffer.h"

#include <algorithm>
#include <random>

#include "exec/coalesced_mail.h"
#include "metrics/registry.h"
#include "proxy/telemetry/otlp_spans.h"
#include "proxy/telemetry/wall_clock.h"

namespace carpool::proxy {

namespace {
// Returns a random seed. Identifiers must differ between processes and loops but are not secret.
std::uint64_t draw_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32U | device()) | 1U;
}
}  // namespace

SpanBuffer::SpanBuffer(LoopId loop, metrics::Registry& metrics, const config::Otlp& settings)
    : loop_(loop), metrics_(metrics), random_(draw_seed()) {
  exec::assume_on_loop();  // the loop does not run yet
  follow(settings);
}

void SpanBuffer::follow(const config::Otlp& settings) {
  on_ = !settings.endpoint.empty() && settings.traces;
  one_in_ = settings.sample;
  limit_ = settings.buffer;
  wall_ = wall_clock_offset();
  if (waiting_.bytes.empty()) make_room();
  std::string().swap(spare_);
}

void SpanBuffer::make_room() {
  if (!on_) return std::string().swap(waiting_.bytes);
  if (waiting_.bytes.capacity() < limit_) waiting_.bytes.reserve(limit_);
}

void SpanBuffer::add(const Span& span) {
  std::string& bytes = waiting_.bytes;
  if (bytes.size() + otlp::kMaxSpan > std::min(limit_, bytes.capacity())) {
    metrics_.record(loop_, metrics::OtlpSpan::buffer_full, 1);
    return;
  }
  otlp::append_span(bytes, span, wall_);
  ++waiting_.spans;
  if (bytes.size() < limit_ / 2 || half_full_ == nullptr || std::exchange(notified_, true)) return;
  half_full_->post();
}

SpanBuffer::Batch SpanBuffer::take() {
  Batch taken = std::exchange(waiting_, Batch{std::move(spare_), 0});
  spare_.clear();
  notified_ = false;
  wall_ = wall_clock_offset();
  make_room();
  return taken;
}

void SpanBuffer::give_back(std::string buffer) {
  buffer.clear();
  if (on_ && buffer.capacity() >= limit_) spare_ = std::move(buffer);
}

}  // namespace carpool::proxy
