#include "proxy/upstream/origin/egress_audit.h"

#include "proxy/telemetry/log.h"

namespace carpool::proxy {

void EgressAudit::on_decision(net::EgressPolicy::Decision decision, const pool::Origin& origin, const Fault* fault) {
  using Decision = net::EgressPolicy::Decision;
  switch (decision) {
    case Decision::allowed:
      return metrics_.record_egress(metrics::Egress::allowed);
    case Decision::denied:
      metrics_.record_egress(metrics::Egress::denied);
      break;
    case Decision::reported:
      metrics_.record_egress(metrics::Egress::reported);
      break;
  }
  const bool denied = decision == Decision::denied;
  log::warn("egress", denied ? "denied" : "would be denied",
            {{"origin", origin.label()}, {"reason", std::string_view(fault->detail)}});
}

}  // namespace carpool::proxy
