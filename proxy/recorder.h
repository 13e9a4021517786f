// Recorder: one loop's account of what happened: one metric update and one access-log line per exchange.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/fault.h"
#include "exec/role.h"
#include "exec/timer.h"
#include "metrics/registry.h"
#include "proxy/dns/events.h"
#include "proxy/http/h2_types.h"
#include "proxy/log/access.h"
#include "proxy/log/levels.h"
#include "proxy/retry.h"

namespace carpool::exec {
class Loop;
}

namespace carpool::proxy {

class Requester;
class Exchange;
struct ExchangeFacts;
class House;
struct OriginContext;

class Recorder final : public dns::Events {
 public:
  Recorder(House& house, exec::Loop& loop);
  ~Recorder() { log_.flush(); }

  static bool wants_peers() { return log::access_enabled(); }  // is the address of a client ever shown?
  void record(const Exchange& exchange, const Requester& client) LOOP_ONLY;
  void record_refused(const Requester& client, const Fault& fault,
                      std::uint16_t status) LOOP_ONLY;  // no head, no origin
  void count_retry(const OriginContext& origin, Proof proof) LOOP_ONLY;
  void count_reset(const OriginContext& origin, http::H2Error code) LOOP_ONLY;
  void observe_handshake(const OriginContext& origin, Duration took) LOOP_ONLY;
  void note_accept_failure(int error) LOOP_ONLY;
  void note_accept_pause() LOOP_ONLY;
  void on_dns_event(metrics::Dns what, std::uint64_t n, std::string_view host) override LOOP_ONLY;
  void count_abuse(http::H2Abuse abuse) LOOP_ONLY;
  void count_shed(metrics::Shed what) LOOP_ONLY;
  void count_given_up(metrics::GivenUp why) LOOP_ONLY;
  void count_retry_denied(const OriginContext& origin) LOOP_ONLY;
  void count_bound(const OriginContext& origin, metrics::Bound what) LOOP_ONLY;
  void count_limited(const OriginContext& origin, metrics::Limit what) LOOP_ONLY;
  void count_ejections(const OriginContext& origin, std::uint64_t n) LOOP_ONLY;
  void client_came() LOOP_ONLY;
  void client_left() LOOP_ONLY;

 private:
  bool worth_a_line(const ExchangeFacts& facts) LOOP_ONLY;
  void write_line(const log::AccessEntry& entry) LOOP_ONLY;
  std::uint64_t next_request() LOOP_ONLY;
  void flush() { log_.flush(); }

  metrics::Registry& metrics_;
  exec::Loop& loop_;
  log::AccessLog log_;
  exec::Timer flusher_;
  std::uint64_t requests_ = 0;
  std::uint32_t unsaid_ = 0;  // exchanges that went well since the last one with a line
  Instant last_accept_complaint_{}, last_dns_complaint_{};
};

}  // namespace carpool::proxy
