// LoopStats: the statistics of one loop: its counters in the registry and its lines in the access log.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/fault.h"
#include "exec/role.h"
#include "exec/timer.h"
#include "metrics/events.h"
#include "proxy/telemetry/access_log.h"

namespace carpool::exec {
class Loop;
}
namespace carpool::metrics {
class Registry;
}

namespace carpool::proxy {

class LoopStats {
 public:
  LoopStats(metrics::Registry& metrics, log::Format format, exec::Loop& loop);
  ~LoopStats() { log_.flush(); }

  // Returns true if the addresses of clients are written to the access log or sent to an origin.
  static bool wants_peers();

  // ---- one exchange: counted, and logged if should_log() returns true ----
  void count_request(metrics::OriginSlot origin, const metrics::RequestInfo& info) LOOP_ONLY;
  // `ordinary`: the status is below 500, and there was no retry and no fault. One of access_sample() such exchanges is
  // logged.
  bool should_log(bool ordinary) LOOP_ONLY;
  void write_line(const log::AccessEntry& entry) LOOP_ONLY;  // assigns the request's number
  bool wants_fields() const { return log_.wants_fields(); }  // true if the line contains request fields
  // Records a request that was rejected before its head was complete. It has no method and no origin.
  // `grpc_status`: of the reply to a gRPC client.
  void record_refused(std::string_view peer, const Fault& fault, std::uint16_t status,
                      std::optional<std::uint16_t> grpc_status = std::nullopt) LOOP_ONLY;

  // ---- events that the registry counts; the type says which ----
  template <class Event>
  void count(Event what) LOOP_ONLY;
  template <class Event>
  void count(metrics::OriginSlot origin, Event what) LOOP_ONLY;
  void count_reset(metrics::OriginSlot origin, std::string_view error) LOOP_ONLY;
  void observe_handshake(metrics::OriginSlot origin, Duration took) LOOP_ONLY;
  void note_accept_failure(int error) LOOP_ONLY;
  void note_accept_pause() LOOP_ONLY;
  void note_full_listener(std::string_view address, std::uint64_t clients) LOOP_ONLY;
  void count_dns(metrics::Dns what, std::uint64_t n) LOOP_ONLY;
  void count_abuse(std::string_view abuse) LOOP_ONLY;
  // Counts a client whose connection ends, and writes one line of the log at level debug.
  void note_tls_flood(std::string_view client) LOOP_ONLY;
  void count_retry_denied(metrics::OriginSlot origin) LOOP_ONLY;
  void count_ejections(metrics::OriginSlot origin, std::uint64_t n) LOOP_ONLY;
  void count_refused(metrics::OriginSlot origin) LOOP_ONLY;  // rejected by the origin's rules
  // Creates the counters of this origin, so that later calls do not allocate them.
  void open_counters(metrics::OriginSlot origin) LOOP_ONLY;
  // Status of the parent proxy's response; 0 if none arrived.
  void count_parent_refusal(std::uint16_t status) LOOP_ONLY;
  void client_came() LOOP_ONLY;
  void client_left() LOOP_ONLY;

 private:
  void flush() { log_.flush(); }

  metrics::Registry& metrics_;
  exec::Loop& loop_;
  log::AccessLog log_;
  exec::Timer flusher_;
  std::uint64_t requests_ = 0;
  std::uint32_t unlogged_ = 0;  // ordinary exchanges since the last one that was logged
  Instant last_accept_log_{}, last_full_log_{};
};

}  // namespace carpool::proxy
