#include "proxy/commands/health.h"

#include <cstdio>
#include <string>

#include "proxy/commands/cli/admin_client.h"

namespace carpool::proxy {

namespace {
constexpr int kTimeoutSeconds = 2;

// Returns true if this command cannot ask the admin endpoint, which is off or would require a certificate.
bool uses_metrics_address(const config::Admin& admin) {
  return !admin.enabled || !admin.client_ca_file.empty();
}

cli::Instance instance_of(const config::Config& config) {
  cli::Instance instance{config.admin.address, {}, kTimeoutSeconds};
  if (uses_metrics_address(config.admin)) {
    instance.address = config.metrics.address;
  } else if (!config.admin.cert_file.empty()) {
    instance.trust.emplace().any = true;
  }
  return instance;
}
}  // namespace

int run_health_command(const config::Config& config) {
  if (uses_metrics_address(config.admin) && config.metrics.address.empty()) {
    std::fputs(config.admin.enabled
                   ? "carpool: --health has no certificate for [admin] client_ca_file: it needs a [metrics] address\n"
                   : "carpool: --health needs [admin] enabled = true, or a [metrics] address\n",
               stderr);
    return 1;
  }
  const cli::Instance instance = instance_of(config);
  const Result<cli::Reply> reply = cli::ask(instance, "GET", "/readyz");
  if (reply && reply->status == 200) return 0;
  std::fprintf(stderr, "carpool: %s: %s\n", instance.address.c_str(), reply ? "not ready" : "no answer");
  return 1;
}

}  // namespace carpool::proxy
