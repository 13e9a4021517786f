#include "proxy/config/check_credentials.h"

#include <algorithm>

#include "proxy/config/secret.h"
#include "proxy/config/text.h"
#include "proxy/config/text_format.h"
#include "proxy/config/token_url.h"
#include "proxy/http/field_name.h"
#include "proxy/http/set_field.h"

namespace carpool::proxy::config {
namespace {

// Returns why this origin may get no credentials, or nothing.
std::string refused_origin(const OriginSettings& origin) {
  switch (origin.origin.scheme) {
    case pool::Scheme::tcp:
      return "does not apply to a tcp origin, whose requests carpool does not see";
    case pool::Scheme::https:
      return origin.upstream.tls.verify ? "" : "is set beside upstream.tls.verify = false, expected only one of them";
    case pool::Scheme::http:
      return on_this_host(origin)
                 ? ""
                 : "is set for an origin without TLS, expected https, a loopback address or a Unix socket";
  }
  return {};
}

// Returns why the secret cannot be used, or nothing. Adds its size to `bytes`.
std::string refused_value(const Secret& secret, std::string_view expected, std::size_t& bytes) {
  Result<std::string> value = value_of(secret);
  if (!value) return value.take_fault().detail.append(", expected ").append(expected);
  bytes += value->size();
  const bool sendable = http::sendable_value(*value);
  wipe(*value);
  if (sendable) return {};
  constexpr const char* kWhy = "has a value with a line end, a control character or white space around it, expected ";
  return std::string(kWhy).append(expected);
}

std::string refused_field(const SetField& field, std::size_t& bytes) {
  if (const std::string_view why = http::refused_name(field.name); !why.empty()) {
    return "may not be set: it " + std::string(why);
  }
  std::size_t size = 0;
  std::string why = refused_value(field.value, "the value of a field", size);
  bytes += field.name.size() + size;
  return why;
}

std::string refused_client_secret(const Secret& secret) {
  constexpr std::string_view kExpected = "the client's secret";
  std::size_t size = 0;
  if (!secret.given()) return std::string("is missing, expected ").append(kExpected);
  return refused_value(secret, kExpected, size);
}

}  // namespace

bool is_user_and_password(std::string_view text) {
  return text.find(':') != std::string_view::npos && http::sendable_value(text);
}

std::string refused_proxy_credentials(const Secret& credentials) {
  Result<std::string> pair = value_of(credentials);
  if (!pair) return pair.take_fault().detail + ", expected user:password";
  const bool usable = is_user_and_password(*pair);
  wipe(*pair);
  return usable ? "" : "has no colon, or a control character or white space around it, expected user:password";
}

bool on_this_host(const OriginSettings& origin) {
  if (!origin.addresses.empty()) {
    return std::all_of(origin.addresses.begin(), origin.addresses.end(),
                       [](const std::string& address) { return unix_address(address) || loopback_address(address); });
  }
  const std::string& host = origin.origin.host;
  return host == "localhost" || host == "::1" || (origin.origin.is_ip_literal() && host.starts_with("127."));
}

namespace {
using Errors = std::vector<std::pair<std::string, std::string>>;

void check_fields(const OriginSettings& origin, Errors& errors) {
  const std::string table = "request.headers";
  if (std::string why = refused_origin(origin); !why.empty()) errors.emplace_back(table, std::move(why));
  if (origin.headers.size() > kMaxFields) {
    errors.emplace_back(table, "has " + std::to_string(origin.headers.size()) + " fields, expected at most " +
                                   std::to_string(kMaxFields));
    return;
  }
  std::size_t bytes = 0;
  for (auto field = origin.headers.begin(); field != origin.headers.end(); ++field) {
    std::string why = refused_field(*field, bytes);
    const bool twice = std::any_of(origin.headers.begin(), field,
                                   [&](const SetField& other) { return http::iequals(other.name, field->name); });
    if (twice) why = "is set twice in another spelling, expected each field once";
    const bool token = origin.oauth2.token_url.empty() || !http::iequals(field->name, "authorization");
    if (!token) why = "is set beside oauth2, expected only one of them";
    if (!why.empty()) errors.emplace_back(table + '.' + field->name, std::move(why));
  }
  if (bytes > kMaxFieldBytes) {
    errors.emplace_back(table, "has more than " + size_text(kMaxFieldBytes) + " together, expected at most that");
  }
}

// Returns `verify` of the origin that serves the token endpoint, or that of all origins.
bool verifies_endpoint(const TokenUrl& url, const Config& config) {
  const auto same = [&](const OriginSettings& one) { return one.origin.same_place(url.origin); };
  const auto own = std::find_if(config.origins.begin(), config.origins.end(), same);
  return (own == config.origins.end() ? config.upstream : own->upstream).tls.verify;
}

void check_oauth2(const OriginSettings& origin, const Config& config, Errors& errors) {
  const OAuth2& oauth2 = origin.oauth2;
  if (oauth2.token_url.empty()) {
    errors.emplace_back("oauth2.token_url", "is missing, expected the URL of the token endpoint");
    return;
  }
  if (std::string why = refused_origin(origin); !why.empty()) errors.emplace_back("oauth2", std::move(why));
  if (oauth2.client_id.empty()) errors.emplace_back("oauth2.client_id", "is missing, expected the client's name");
  if (std::string why = refused_client_secret(oauth2.client_secret); !why.empty())
    errors.emplace_back("oauth2.client_secret", std::move(why));
  const Result<TokenUrl> url = parse_token_url(oauth2.token_url);
  if (url && url->origin.scheme == pool::Scheme::https && !verifies_endpoint(*url, config)) {
    errors.emplace_back("oauth2.token_url",
                        "belongs to an origin with upstream.tls.verify = false, expected one that is verified");
  }
}
}  // namespace

Errors credential_errors(const OriginSettings& origin, const Config& config) {
  Errors errors;
  if (!origin.headers.empty()) check_fields(origin, errors);
  if (!(origin.oauth2 == OAuth2{})) check_oauth2(origin, config, errors);
  return errors;
}

}  // namespace carpool::proxy::config
