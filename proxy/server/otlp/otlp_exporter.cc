#include "proxy/server/otlp/otlp_exporter.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <utility>

#include "exec/fan_out.h"
#include "metrics/registry.h"
#include "proxy/config/options.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/server/admin/handlers/metrics.h"
#include "proxy/server/admin/view.h"
#include "proxy/telemetry/log.h"
#include "proxy/telemetry/otlp_envelope.h"
#include "proxy/telemetry/otlp_metrics.h"

namespace carpool::proxy {

namespace {
constexpr OwnRequestKind kExport{"carpool otlp", "the collector", otlp::kMaxResponse, false};

std::uint64_t draw() {
  std::random_device device;
  return (std::uint64_t{device()} << 32U | device()) | 1U;
}

std::string draw_instance() {
  std::array<char, 24> text;
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(draw()));
  return text.data();
}

// Returns true for the statuses after which a client sends the same request again (OTLP specification).
bool temporary(std::uint16_t status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}
}  // namespace

OtlpExporter::OtlpExporter(const ConfigInForce& config, const Workers& workers, metrics::Registry& metrics,
                           const admin::AdminView& view)
    : config_(config),
      workers_(workers),
      metrics_(metrics),
      view_(view),
      loop_(workers.front()->parts.loop),
      instance_(draw_instance()),
      request_(workers.front()->parts.exchange_context, point_, kExport,
               exec::Bound::to<&OtlpExporter::on_response_end>(*this)),
      retry_(draw()),
      half_full_(loop_, exec::Bound::to<&OtlpExporter::on_half_full>(*this)),
      due_(exec::Timer::bind<&OtlpExporter::on_due>(loop_, *this)),
      timeout_(exec::Timer::bind<&OtlpExporter::on_timeout>(loop_, *this)),
      pause_(exec::Timer::bind<&OtlpExporter::on_pause_over>(loop_, *this)) {
  exec::assume_on_loop();  // no loop runs yet
  point_.set(listen_);
  for (const auto& worker : workers_) worker->parts.spans.notify(half_full_);
  follow(config.get().otlp);
}

void OtlpExporter::sweep() {
  if (!(config_.get().otlp == settings_)) follow(config_.get().otlp);
}

// Applies new settings. A batch that is being sent keeps its destination.
void OtlpExporter::follow(const config::Otlp& settings) {
  settings_ = settings;
  if (settings_.endpoint.empty()) return stop();
  url_ = *config::parse_request_url(settings_.endpoint);  // checked with the configuration
  while (url_.path.ends_with('/')) url_.path.pop_back();
  due_.arm(loop_.now() + settings_.interval);
}

void OtlpExporter::stop() {
  due_.disarm();
  timeout_.disarm();
  pause_.disarm();
  if (std::exchange(sending_, false)) request_.cancel();
  while (!batches_.empty()) end_batch(metrics::OtlpSpan::given_up, batches_.front().batch.spans);
}

void OtlpExporter::on_due() {
  exec::assume_on_loop();
  due_.arm(loop_.now() + settings_.interval);
  sweep();
  if (!due_.armed()) return;
  collect();
  collect_metrics();
}

void OtlpExporter::on_half_full() {
  exec::assume_on_loop();
  if (due_.armed()) collect();
}

void OtlpExporter::collect() {
  const auto of_spans = [](const Collected& one) { return one.signal == Signal::traces; };
  if (std::any_of(batches_.begin(), batches_.end(), of_spans) || std::exchange(collecting_, true)) return;
  exec::query_loops_then<Collected>(
      loop_, workers_,
      [](Worker& worker) LOOP_ONLY {
        return Collected{Signal::traces, worker.parts.loop.id(), worker.parts.spans.take()};
      },
      [this](std::vector<Collected> all) LOOP_ONLY { collected(std::move(all)); });
}

void OtlpExporter::collected(std::vector<Collected> all) {
  collecting_ = false;
  for (Collected& one : all) {
    if (one.batch.spans != 0 && due_.armed()) {
      add(std::move(one));
    } else {
      metrics_.record(loop_.id(), metrics::OtlpSpan::given_up, one.batch.spans);
      give_back(std::move(one));
    }
  }
  end_if_idle();
}

// A scrape takes milliseconds, so it runs as a task.
void OtlpExporter::collect_metrics() {
  const auto of_metrics = [](const Collected& one) { return one.signal == Signal::metrics; };
  if (!settings_.metrics || std::any_of(batches_.begin(), batches_.end(), of_metrics) ||
      std::exchange(encoding_, true)) {
    return;
  }
  const auto ended = [this](std::vector<std::string> all) LOOP_ONLY {
    encoding_ = false;
    if (!all.empty() && due_.armed()) add({Signal::metrics, 0, {std::move(all.front()), 0}});
    end_if_idle();
  };
  using Home = exec::RepliesToLoop<std::string, decltype(ended)>;
  // Ends without a response if the task is rejected or fails.
  exec::PendingReply<Home> reply(std::make_shared<Home>(1, loop_, ended));
  exec::TaskPtr task =
      exec::make_task("otlp metrics", [this, reply = std::move(reply)]() mutable { reply.give(scrape()); });
  static_cast<void>(workers_.front()->parts.exchange_context.tasks->submit(std::move(task)));
}

std::string OtlpExporter::scrape() const {
  metrics::Sample sample = admin::take_sample(view_);
  const double start = sample.process ? sample.process->start_time_seconds : 0;
  const std::chrono::nanoseconds now = std::chrono::system_clock::now().time_since_epoch();
  const otlp::MetricTimes times{static_cast<std::uint64_t>(start * 1e9), static_cast<std::uint64_t>(now.count())};
  return otlp::encode_metrics({metrics_, std::move(sample)}, times);
}

// Enqueues the batch behind those in progress.
void OtlpExporter::add(Collected collected) {
  batches_.push_back(std::move(collected));
  if (batches_.size() != 1) return;
  retry_.begin();
  send_next();
}

bool OtlpExporter::export_last(exec::Bound ended) {
  if (!due_.armed()) return false;
  last_ended_ = ended;
  collects_last_ = true;
  end_if_idle();
  return true;
}

// Continues or ends the last export, if one was requested and no batch is in progress.
void OtlpExporter::end_if_idle() {
  if (!last_ended_ || collecting_ || encoding_ || !batches_.empty()) return;
  if (std::exchange(collects_last_, false)) {
    collect();
    collect_metrics();
    return;
  }
  std::exchange(last_ended_, exec::Bound())();
}

void OtlpExporter::send_next() {
  const std::string& body = batches_.front().batch.bytes;
  const bool traces = batches_.front().signal == Signal::traces;
  envelope_ = otlp::envelope(settings_, instance_, body.size());
  http::RequestHead& head = request_.prepare();
  head.method = "POST";
  head.target = url_.origin.label() + url_.path + (traces ? "/v1/traces" : "/v1/metrics");
  head.fields.add("Host", url_.origin.authority());
  head.fields.add("User-Agent", "carpool/" + std::string(config::version()));
  head.fields.add("Content-Type", "application/x-protobuf");
  head.framing = http::Framing::length;
  head.length = envelope_.size() + body.size();
  sending_ = true;
  timeout_.arm(loop_.now() + settings_.timeout);
  request_.send(envelope_, body);
}

void OtlpExporter::on_pause_over() {
  exec::assume_on_loop();
  send_next();
}

void OtlpExporter::on_timeout() {
  exec::assume_on_loop();
  sending_ = false;
  request_.cancel();
  failed(metrics::OtlpRequest::timeout, "no answer within otlp.timeout", std::nullopt);
}

void OtlpExporter::on_response_end() {
  exec::assume_on_loop();
  using metrics::OtlpRequest;
  sending_ = false;
  timeout_.disarm();
  const std::uint16_t status = request_.status();
  if (request_.fault() && status == 0) return failed(OtlpRequest::failed, request_.fault()->detail, std::nullopt);
  if (temporary(status)) {
    return failed(OtlpRequest::unavailable, "the collector answered " + std::to_string(status), request_.retry_after());
  }
  if (status < 200 || status > 299) {
    return refused(OtlpRequest::refused, "the collector answered " + std::to_string(status));
  }
  // The collector may have accepted the spans, so a second request could duplicate them.
  if (request_.fault()) return refused(OtlpRequest::unusable, request_.fault()->detail);
  const Result<otlp::ExportResponse> response = otlp::read_response(request_.body());
  if (!response) return refused(OtlpRequest::unusable, response.fault().detail);
  accepted(response->rejected);
}

void OtlpExporter::accepted(std::uint64_t rejected) {
  count(metrics::OtlpRequest::accepted);
  const std::uint64_t spans = batches_.front().batch.spans;  // 0: metrics
  const std::uint64_t lost = std::min(rejected, spans);
  metrics_.record(loop_.id(), metrics::OtlpSpan::rejected, lost);
  log_success();
  end_batch(metrics::OtlpSpan::exported, spans - lost);
}

void OtlpExporter::refused(metrics::OtlpRequest end, std::string_view why) {
  count(end);
  log_failure(why);
  end_batch(metrics::OtlpSpan::refused, batches_.front().batch.spans);
}

void OtlpExporter::failed(metrics::OtlpRequest end, std::string_view why, std::optional<Duration> pause) {
  count(end);
  log_failure(why);
  // The next export contains these counters too.
  const bool traces = batches_.front().signal == Signal::traces;
  const std::optional<Duration> next = traces ? retry_.after_failure(pause) : std::nullopt;
  if (next) return pause_.arm(loop_.now() + *next);
  end_batch(metrics::OtlpSpan::given_up, batches_.front().batch.spans);
}

// Counts the spans of the first batch, returns its buffer and continues with the next one.
void OtlpExporter::end_batch(metrics::OtlpSpan end, std::uint64_t spans) {
  metrics_.record(loop_.id(), end, spans);
  Collected over = std::move(batches_.front());
  batches_.pop_front();
  give_back(std::move(over));
  if (!due_.armed()) return;
  if (batches_.empty()) return end_if_idle();
  retry_.begin();
  send_next();
}

void OtlpExporter::give_back(Collected over) {
  if (over.signal == Signal::metrics) return;
  Worker& home = *workers_[over.loop];
  exec::send(home.parts.loop, [&home, buffer = std::move(over.batch.bytes)]()
                                  LOOP_ONLY mutable { home.parts.spans.give_back(std::move(buffer)); });
}

// Each logs a change only, not each export.
void OtlpExporter::log_success() {
  const auto signal = static_cast<std::size_t>(batches_.front().signal);
  if (std::exchange(works_[signal], true)) return;
  log::info("otlp", "exports succeed again",
            {{"endpoint", url_.origin.label() + url_.path}, {"signal", metrics::kOtlpSignals[signal]}});
}

void OtlpExporter::log_failure(std::string_view why) {
  const auto signal = static_cast<std::size_t>(batches_.front().signal);
  if (!std::exchange(works_[signal], false)) return;
  log::warn("otlp", "exports fail",
            {{"endpoint", url_.origin.label() + url_.path}, {"signal", metrics::kOtlpSignals[signal]}, {"error", why}});
}

void OtlpExporter::count(metrics::OtlpRequest end) {
  metrics_.record_otlp_request(loop_.id(), batches_.front().signal, end);
}

}  // namespace carpool::proxy
