// OtlpExporter: sends the spans of all loops, and the metrics, to an OpenTelemetry collector, through the pool. Lives
// on the first worker's loop. Sends one request at a time; until it has ended, the loops keep their next spans in
// buffers of a fixed size. A slow, full or unreachable collector therefore costs this memory and delays no request.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "exec/coalesced_mail.h"
#include "exec/timer.h"
#include "metrics/events.h"
#include "proxy/config/in_force.h"
#include "proxy/config/request_url.h"
#include "proxy/server/otlp/export_retry.h"
#include "proxy/server/own_request.h"
#include "proxy/server/worker.h"
#include "proxy/telemetry/span_buffer.h"

namespace carpool::proxy::admin {
class AdminView;
}

namespace carpool::proxy {

class OtlpExporter final {
 public:
  // Must be called before the loops run. `view`: source of the data of a scrape; must outlive the tasks of the loops.
  OtlpExporter(const ConfigInForce& config, const Workers& workers, metrics::Registry& metrics,
               const admin::AdminView& view);
  // The loops must have ended and been drained, so that no mail is in flight.
  ~OtlpExporter() = default;

  // Follows the configuration in force. Must be called periodically.
  void sweep() LOOP_ONLY;
  // Exports the remaining data before the process ends. Returns false if there is no export; otherwise `ended` is
  // called in a later step, whatever the result.
  bool export_last(exec::Bound ended) LOOP_ONLY;
  void stop() LOOP_ONLY;

 private:
  using Signal = metrics::OtlpSignal;
  // Collected: the encoded spans of one loop, or the metrics.
  struct Collected {
    Signal signal = Signal::traces;
    LoopId loop = 0;
    SpanBuffer::Batch batch;
  };
  void follow(const config::Otlp& settings) LOOP_ONLY;
  void on_due();
  void on_half_full();
  void collect() LOOP_ONLY;
  void collected(std::vector<Collected> all) LOOP_ONLY;
  void collect_metrics() LOOP_ONLY;
  std::string scrape() const;  // runs in a task
  void add(Collected collected) LOOP_ONLY;
  void end_if_idle() LOOP_ONLY;
  void send_next() LOOP_ONLY;
  void on_pause_over();
  void on_timeout();
  void on_response_end();
  void accepted(std::uint64_t rejected) LOOP_ONLY;
  void refused(metrics::OtlpRequest end, std::string_view why) LOOP_ONLY;
  void failed(metrics::OtlpRequest end, std::string_view why, std::optional<Duration> pause) LOOP_ONLY;
  void end_batch(metrics::OtlpSpan end, std::uint64_t spans) LOOP_ONLY;
  void give_back(Collected collected) LOOP_ONLY;
  void log_success() LOOP_ONLY;
  void log_failure(std::string_view why) LOOP_ONLY;
  void count(metrics::OtlpRequest end) LOOP_ONLY;

  const ConfigInForce& config_;
  const Workers& workers_;
  metrics::Registry& metrics_;
  const admin::AdminView& view_;
  exec::Loop& loop_;
  const std::string instance_;
  config::Listen listen_;  // settings of a listener that accepts no clients
  ListenPoint point_;
  config::Otlp settings_;
  config::RequestUrl url_;  // parsed from settings_.endpoint
  OwnRequest request_;
  ExportRetry retry_;
  exec::CoalescedMail half_full_;
  exec::Timer due_, timeout_, pause_;
  std::deque<Collected> batches_;  // at most one of each loop and one of metrics; the first one is being sent
  std::string envelope_;           // of the first batch
  bool collecting_ = false, encoding_ = false, sending_ = false;
  std::array<bool, 2> works_{true, true};  // by Signal, as last logged
  exec::Bound last_ended_;                 // set if the process ends after this export
  bool collects_last_ = false;
};

}  // namespace carpool::proxy
