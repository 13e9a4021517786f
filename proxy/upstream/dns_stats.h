// DnsStats: reports a loop's DNS events to its statistics and the log.
#pragma once

#include <string_view>

#include "exec/loop.h"
#include "proxy/net/dns/events.h"

namespace carpool::proxy {

class LoopStats;

class DnsStats final : public dns::Events {
 public:
  DnsStats(LoopStats& stats, const exec::Loop& loop) : stats_(stats), loop_(loop) {}
  void on_dns_event(metrics::Dns what, std::uint64_t n, std::string_view host) override LOOP_ONLY;

 private:
  LoopStats& stats_;
  const exec::Loop& loop_;
  Instant last_warning_{};
};

}  // namespace carpool::proxy
