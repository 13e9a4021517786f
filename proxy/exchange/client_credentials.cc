#include "proxy/exchange/client_credentials.h"

#include <algorithm>
#include <utility>

#include "proxy/net/tls/digest.h"

namespace carpool::proxy {
namespace {

using config::Credential;
using config::CredentialScheme;
using Form = http::ProxyAuthorization::Form;

#define CARPOOL_BASIC "Proxy-Authenticate: Basic realm=\"carpool\", charset=\"UTF-8\"\r\n"
#define CARPOOL_BEARER "Proxy-Authenticate: Bearer realm=\"carpool\"\r\n"

std::string_view challenge_of(const std::vector<Credential>& listed) {
  const auto has = [&listed](CredentialScheme scheme) {
    return std::any_of(listed.begin(), listed.end(), [scheme](const Credential& c) { return c.scheme == scheme; });
  };
  if (!has(CredentialScheme::bearer)) return CARPOOL_BASIC;
  return has(CredentialScheme::basic) ? CARPOOL_BASIC CARPOOL_BEARER : CARPOOL_BEARER;
}

}  // namespace

ClientCredentials::ClientCredentials(std::vector<Credential> listed)
    : listed_(std::move(listed)), challenge_(challenge_of(listed_)) {}

const std::string* ClientCredentials::user_of(const http::ProxyAuthorization& given) const {
  if (given.form != Form::basic && given.form != Form::bearer) return nullptr;
  const bool basic = given.form == Form::basic;
  const CredentialScheme scheme = basic ? CredentialScheme::basic : CredentialScheme::bearer;
  const config::SecretDigest digest = tls::sha256(given.secret);
  const std::string* user = nullptr;
  for (const Credential& one : listed_) {
    if (one.scheme != scheme || (basic && one.name != given.name)) continue;
    if (tls::equal_in_constant_time(one.digest, digest)) user = &one.name;
  }
  return user;
}

}  // namespace carpool::proxy
