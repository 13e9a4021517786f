#include "proxy/upstream/dns_stats.h"

#include "proxy/telemetry/log.h"
#include "proxy/telemetry/loop_stats.h"

namespace carpool::proxy {

namespace {
constexpr Duration kWarnEvery = std::chrono::seconds(10);
}  // namespace

void DnsStats::on_dns_event(metrics::Dns what, std::uint64_t n, std::string_view host) {
  stats_.count_dns(what, n);
  if (what == metrics::Dns::resolv_conf_changed) return log::info("dns", "resolv.conf changed and was reloaded");
  if (what != metrics::Dns::addresses_left_out) return;
  const Instant now = loop_.now();
  if (last_warning_ != Instant{} && now - last_warning_ < kWarnEvery) return;
  last_warning_ = now;
  log::warn("dns", "a name has more addresses than carpool keeps", {{"host", host}, {"left_out", n}});
}

}  // namespace carpool::proxy
