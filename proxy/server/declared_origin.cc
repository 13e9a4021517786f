#include "proxy/server/declared_origin.h"

#include <algorithm>

#include "proxy/upstream/origin/origin_limits.h"

namespace carpool::proxy {
namespace {

const config::OriginSettings* find(const config::Config& config, const std::string& label) {
  const auto found =
      std::find_if(config.origins.begin(), config.origins.end(),
                   [&](const config::OriginSettings& settings) { return settings.origin.label() == label; });
  return found == config.origins.end() ? nullptr : &*found;
}

pool::Limits declared_limits(const config::OriginSettings& settings, const config::Config& config) {
  const pool::Scheme scheme = settings.origin.scheme;
  return limits_of(settings.pool, scheme, protocols_of(settings.upstream, scheme), config);
}

}  // namespace

std::optional<admin::PoolInfo> declared_pool(const config::Config& config, const std::string& label) {
  const config::OriginSettings* const settings = find(config, label);
  if (settings == nullptr) return std::nullopt;
  admin::PoolInfo info;
  info.origin = label;
  info.snapshot.size = declared_limits(*settings, config).size;
  return info;
}

std::optional<admin::PoolAnalysis> declared_study(const config::Config& config, const std::string& label) {
  const config::OriginSettings* const settings = find(config, label);
  if (settings == nullptr) return std::nullopt;
  admin::PoolAnalysis study;
  study.limits = declared_limits(*settings, config);
  study.wait_timeout = settings->pool.wait_timeout;
  return study;
}

}  // namespace carpool::proxy
