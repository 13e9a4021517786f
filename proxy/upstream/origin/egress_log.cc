#include "proxy/upstream/origin/egress_log.h"

#include "proxy/telemetry/log.h"

namespace carpool::proxy {

bool denied_by_egress(const Fault& fault) {
  const bool denial = fault.kind == FaultKind::egress_denied || fault.kind == FaultKind::loop_detected;
  return denial && fault.side == Side::self;
}

void log_egress_denied(std::string_view origin, const Fault& fault) {
  log::warn("egress", "denied", {{"origin", origin}, {"reason", std::string_view(fault.detail)}});
}

void log_egress_reported(std::string_view origin, const Fault& fault) {
  log::warn("egress", "would be denied", {{"origin", origin}, {"reason", std::string_view(fault.detail)}});
}

}  // namespace carpool::proxy
