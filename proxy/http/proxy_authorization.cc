#include "proxy/http/proxy_authorization.h"

#include <algorithm>
#include <optional>

namespace carpool::proxy::http {
namespace {

using Form = ProxyAuthorization::Form;

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kOthers = "-._~+/";  // of token68
constexpr std::uint8_t kNoDigit = 64;
constexpr std::array<std::uint8_t, 256> kValues = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (std::size_t i = 0; i < kBase64.size(); ++i) {
    values[static_cast<unsigned char>(kBase64[i])] = static_cast<std::uint8_t>(i);
  }
  return values;
}();

// RFC 4648 §4, with its padding. Returns the size; nothing if the text is not base64.
std::optional<std::size_t> decode(std::string_view text, DecodedCredentials& out) {
  if (text.size() % 4 != 0 || text.size() / 4 * 3 > out.size()) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::size_t size = 0;
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::uint8_t value = i < text.size() - padding ? kValues[static_cast<unsigned char>(text[i])] : 0;
    if (value == kNoDigit) return std::nullopt;
    bits = bits << 6U | value;
    if (i % 4 != 3) continue;
    for (const unsigned shift : {16U, 8U, 0U}) out[size++] = static_cast<char>(bits >> shift & 0xFFU);
    bits = 0;
  }
  return size - padding;
}

ProxyAuthorization read_basic(std::string_view encoded, DecodedCredentials& decoded) {
  const std::optional<std::size_t> size = decode(encoded, decoded);
  const std::string_view pair(decoded.data(), size.value_or(0));
  const std::size_t colon = pair.find(':');
  if (colon == std::string_view::npos) return {Form::malformed, {}, {}};
  return {Form::basic, pair.substr(0, colon), pair.substr(colon + 1)};
}

}  // namespace

bool token68(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           kOthers.find(c) != std::string_view::npos;
  };
  const std::size_t end = text.find('=');
  const std::string_view body = text.substr(0, end);
  return !body.empty() && std::all_of(body.begin(), body.end(), fits) &&
         text.find_first_not_of('=', body.size()) == std::string_view::npos;
}

ProxyAuthorization read_proxy_authorization(const Fields& fields, DecodedCredentials& decoded) {
  if (!fields.may_have(FieldName::proxy_authorization)) return {};
  const std::size_t count = fields.count(FieldName::proxy_authorization);
  if (count == 0) return {};
  const std::string_view value = fields.get(FieldName::proxy_authorization);
  const std::size_t space = value.find(' ');
  if (count > 1 || value.size() > kMaxProxyAuthorization || space == std::string_view::npos) {
    return {Form::malformed, {}, {}};
  }
  const std::string_view credentials = value.substr(std::min(value.find_first_not_of(' ', space), value.size()));
  if (!token68(credentials)) return {Form::malformed, {}, {}};
  if (iequals(value.substr(0, space), "bearer")) return {Form::bearer, {}, credentials};
  if (iequals(value.substr(0, space), "basic")) return read_basic(credentials, decoded);
  return {Form::malformed, {}, {}};
}

}  // namespace carpool::proxy::http
