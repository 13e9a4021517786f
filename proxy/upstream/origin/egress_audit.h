// EgressAudit: counts every decision of the egress rules and logs those that deny or report.
#pragma once

#include "metrics/registry.h"
#include "proxy/net/egress_policy.h"

namespace carpool::proxy {

class EgressAudit final : public net::EgressPolicy::DecisionListener {
 public:
  explicit EgressAudit(metrics::Registry& metrics) : metrics_(metrics) {}
  void on_decision(net::EgressPolicy::Decision decision, const pool::Origin& origin, const Fault* fault) override;

 private:
  metrics::Registry& metrics_;
};

}  // namespace carpool::proxy
