#include "proxy/server/reload/certificate_ends.h"

#include <chrono>
#include <set>
#include <utility>

#include "proxy/net/tls/certificate_end.h"

namespace carpool::proxy {

void CertificateEnds::read(const config::Config& config) {
  std::set<std::pair<std::string, std::string>> named;  // use, file
  for (const config::Listen& listen : config.listen) named.emplace("listener", listen.cert_file);
  if (config.admin.enabled) named.emplace("admin", config.admin.cert_file);
  named.emplace("client", config.upstream.tls.cert_file);
  for (const config::OriginSettings& origin : config.origins) named.emplace("client", origin.upstream.tls.cert_file);
  if (!config.intercept.ca_dir.empty()) named.emplace("authority", config.intercept.ca_dir + "/ca.pem");
  std::vector<metrics::CertificateSample> ends;
  for (const auto& [use, file] : named) {
    if (file.empty()) continue;
    const auto end = tls::certificate_end(file);
    if (!end) continue;  // the reload has reported the error
    ends.push_back({use, file, std::chrono::duration<double>(end->time_since_epoch()).count()});
  }
  const Held lock(mutex_);
  ends_ = std::move(ends);
}

std::vector<metrics::CertificateSample> CertificateEnds::sample() const {
  const Held lock(mutex_);
  return ends_;
}

}  // namespace carpool::proxy
