#include "proxy/commands/webhook/intercept_annotation.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "proxy/config/text.h"

namespace carpool::proxy::webhook {
namespace {

constexpr std::size_t kMaxHosts = 256;  // each is a constraint of the authority and has a certificate
constexpr std::size_t kMaxWord = 255 + 1 + 5;
constexpr std::string_view kScheme = "https://";

Fault bad_annotation(std::string why) {
  return {FaultKind::malformed_request, Side::client, std::move(why)};
}

bool separates(char c) {
  return c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

Result<pool::Origin> origin_of(std::string_view word) {
  const std::string quoted = "`" + config::visible(word.substr(0, kMaxWord)) + "`";
  constexpr std::array<std::string_view, 6> kSwitches{"true", "false", "yes", "no", "on", "off"};
  if (std::find(kSwitches.begin(), kSwitches.end(), lower(word)) != kSwitches.end()) {
    return bad_annotation(quoted + " is not a host; expected true, false or hosts");
  }
  if (word.starts_with(kScheme)) word.remove_prefix(kScheme.size());
  if (word.size() > kMaxWord) return bad_annotation(quoted + " is too long for a host");
  if (word.find('*') != std::string_view::npos) return bad_annotation(quoted + " is a pattern, expected one host");
  Result<pool::Origin> origin = pool::canonical_origin(pool::Scheme::https, word);
  if (!origin) return bad_annotation(quoted + " is not a host: " + config::visible(origin.fault().detail));
  if (origin->is_ip_literal()) return bad_annotation(quoted + " is an address, expected a name");
  return origin;
}

}  // namespace

Result<config::InterceptRequest> parse_intercept(std::string_view text) {
  using Which = config::InterceptRequest::Which;
  config::InterceptRequest request;
  while (!text.empty()) {
    const auto end = std::find_if(text.begin(), text.end(), separates);
    const std::string_view word = text.substr(0, static_cast<std::size_t>(end - text.begin()));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (word.empty()) continue;
    const bool alone = request.which == Which::as_configured && std::all_of(text.begin(), text.end(), separates);
    if (alone && (word == "true" || word == "false")) {
      request.which = word == "true" ? Which::every_https : Which::none;
      return request;
    }
    Result<pool::Origin> origin = origin_of(word);
    if (!origin) return origin.take_fault();
    request.which = Which::listed;
    if (request.origins.size() == kMaxHosts)
      return bad_annotation("lists more than " + std::to_string(kMaxHosts) + " hosts");
    request.origins.push_back(std::move(*origin));
  }
  return request;
}

}  // namespace carpool::proxy::webhook
