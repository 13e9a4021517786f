#include "proxy/downstream/authority_check.h"

#include <utility>

#include "proxy/config/read.h"
#include "proxy/net/tls/authority.h"

namespace carpool::proxy {

namespace {
std::string command_for(const config::Config& config, const char* flag) {
  std::string command = "`carpool ca init " + config.intercept.ca_dir + flag + " --host";
  for (const config::OriginSettings& origin : config.origins) {
    if (origin.intercept) command += ' ' + origin.origin.host;
  }
  return command + '`';
}
}  // namespace

void check_authority(config::Reading& reading) {
  const config::Config& config = reading.config;
  if (!reading || reading.intercepted.empty()) return;
  const auto error = [&](config::ConfigError place, std::string text) {
    place.text = std::move(text);
    reading.errors.push_back(std::move(place));
  };
  const auto authority = tls::Authority::load(config.intercept.ca_dir);
  if (!authority) {
    return error(reading.intercepted.front().authority,
                 authority.fault().detail + ", expected an authority as " + command_for(config, "") + " makes it");
  }
  for (const config::Intercepted& one : reading.intercepted) {
    const Status covered = (*authority)->covers(one.host);
    if (covered) continue;
    const std::string file = config.intercept.ca_dir + "/ca.pem";
    const bool outside = covered.fault().kind == FaultKind::tls_certificate;
    error(one.origin, '`' + one.label + "` " +
                          (outside ? "is outside the name constraints of " + file
                                   : "gets no certificate of " + file + ": " + covered.fault().detail) +
                          ", expected an authority as " + command_for(config, " --replace") + " makes it");
  }
}

}  // namespace carpool::proxy
