#include "proxy/downstream/certificate_check.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "proxy/config/read.h"
#include "proxy/net/tls/client_context.h"
#include "proxy/net/tls/server_context.h"

namespace carpool::proxy {

namespace {

template <class Made>
std::optional<Fault> fault_of(Result<Made> made) {
  return made ? std::nullopt : std::optional(made.take_fault());
}

std::optional<Fault> load(const config::NamedCertificates& named) {
  if (named.server) {
    tls::ServerSettings settings;
    settings.cert_file = named.cert_file;
    settings.key_file = named.key_file;
    settings.client_ca_file = named.ca_file;
    return fault_of(tls::ServerContext::make(settings));
  }
  tls::ClientSettings settings;
  settings.cert_file = named.cert_file;
  settings.key_file = named.key_file;
  settings.ca_file = named.ca_file;
  settings.verify =
      named.verify && !named.ca_file.empty();  // the system's authorities are not a file of the configuration
  return fault_of(tls::ClientContext::make(settings));
}

// Returns an error for the setting with which the detail begins, there without its table.
config::ConfigError error_of(const config::NamedCertificates& named, std::string_view detail) {
  const std::string_view setting = detail.substr(0, detail.find(' '));
  const bool cert = setting == "cert_file", key = setting == "key_file";
  config::ConfigError error = cert ? named.cert : key ? named.key : named.ca;
  error.text.append(detail.substr(detail.find(' ') + 1)).append(", expected ");
  error.text.append(cert  ? "a certificate and its chain in PEM"
                    : key ? "the private key of cert_file in PEM"
                          : "certificates of authorities in PEM");
  return error;
}

}  // namespace

void check_certificates(config::Reading& reading) {
  using Files = std::tuple<bool, bool, std::string, std::string, std::string>;
  std::map<Files, std::optional<Fault>> loaded;  // many origins may name the same files
  for (const config::NamedCertificates& named : reading.certificates) {
    const auto [known, added] =
        loaded.try_emplace({named.server, named.verify, named.cert_file, named.key_file, named.ca_file});
    if (added) known->second = load(named);
    if (known->second) reading.errors.push_back(error_of(named, known->second->detail));
  }
  if (config::bound(reading.errors)) reading.mark_exceeded(config::ReadingLimit::errors);
}

}  // namespace carpool::proxy
