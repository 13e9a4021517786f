#include "proxy/server/oauth2/token_reply.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/json_bounds.h"
#include "proxy/config/secret.h"
#include "proxy/http/field_name.h"
#include "proxy/http/set_field.h"

namespace carpool::proxy {

namespace {

using Json = nlohmann::json;

constexpr JsonBounds kReplyBounds{8, 1000};
constexpr Duration kUnknownLife = std::chrono::minutes(5);  // lifetime of a token whose response has no expires_in
constexpr std::int64_t kMaxSeconds = std::int64_t{30} * 24 * 3600;
constexpr std::array<std::string_view, 6> kErrors{"invalid_request",     "invalid_client",         "invalid_grant",
                                                  "unauthorized_client", "unsupported_grant_type", "invalid_scope"};

Fault malformed(std::string why) {
  return {FaultKind::malformed_response, Side::self, "the token endpoint " + std::move(why)};
}

std::string text_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// Returns the whole seconds of "3599" or "3599.7"; 0 for any other text.
std::int64_t whole_seconds(std::string_view text) {
  const auto digits = [](std::string_view part) {
    return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  const std::size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  if (!digits(whole) || (point != std::string_view::npos && !digits(text.substr(point + 1)))) return 0;
  std::int64_t seconds = 0;
  for (const char c : whole) seconds = std::min(seconds * 10 + (c - '0'), kMaxSeconds);
  return seconds;
}

// Returns expires_in, which some servers send as a string or with a fraction.
Duration lifetime_of(const Json& json) {
  const auto found = json.find("expires_in");
  if (found == json.end()) return kUnknownLife;
  std::int64_t seconds = 0;
  if (found->is_number_integer()) seconds = found->get<std::int64_t>();
  if (found->is_number_unsigned()) {
    seconds = static_cast<std::int64_t>(
        std::min<std::uint64_t>(found->get<std::uint64_t>(), static_cast<std::uint64_t>(kMaxSeconds)));
  }
  if (found->is_number_float()) {
    const auto number = found->get<double>();
    if (number >= 1) seconds = static_cast<std::int64_t>(std::min(number, static_cast<double>(kMaxSeconds)));
  }
  if (found->is_string()) seconds = whole_seconds(found->get_ref<const std::string&>());
  return seconds > 0 ? std::chrono::seconds(std::min(seconds, kMaxSeconds)) : kUnknownLife;
}

std::string error_in(std::string_view body) {
  const Result<Json> json = read_json<Json>(body, kReplyBounds);
  const std::string error = json && json->is_object() ? text_of(*json, "error") : std::string();
  const bool known = std::find(kErrors.begin(), kErrors.end(), error) != kErrors.end();
  return known ? " " + error : std::string();
}

}  // namespace

bool refuses_token(unsigned status) {
  return status != 200;
}

Result<Token> read_token(unsigned status, std::string_view body) {
  if (refuses_token(status)) return malformed("answered " + std::to_string(status) + error_in(body));
  const Result<Json> json = read_json<Json>(body, kReplyBounds);
  if (!json || !json->is_object()) return malformed("answered with something other than a JSON object");
  const std::string type = text_of(*json, "token_type");
  if (!type.empty() && !http::iequals(type, "bearer")) return malformed("granted a token that is not of type Bearer");
  Token token{text_of(*json, "access_token"), lifetime_of(*json)};
  if (token.value.empty()) return malformed("answered without access_token");
  const bool visible = std::all_of(token.value.begin(), token.value.end(), [](char c) { return c > ' ' && c < 0x7F; });
  if (!visible || token.value.size() > config::kMaxSecretLength)
    return malformed("granted a token that is not a valid field value");
  return token;
}

}  // namespace carpool::proxy
