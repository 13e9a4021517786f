#include "proxy/server/oauth2/token_request.h"

#include "base/ascii.h"
#include "proxy/net/tls/digest.h"

namespace carpool::proxy {

namespace {
void append_pair(std::string& out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  out.append(out.empty() ? "" : "&").append(name).append(1, '=').append(form_encoded(value));
}
}  // namespace

std::string form_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '*';
    if (plain) {
      out.push_back(c);
    } else if (c == ' ') {
      out.push_back('+');
    } else {
      append_hex(out += '%', c, kUpperHex);
    }
  }
  return out;
}

std::string write_token_request(http::RequestHead& head, const config::OAuth2& settings, const config::TokenUrl& url,
                                std::string_view secret) {
  std::string body;
  append_pair(body, "grant_type", "client_credentials");
  append_pair(body, "scope", settings.scope);
  append_pair(body, "audience", settings.audience);
  const bool basic = settings.client_authentication == config::ClientAuthentication::basic;
  if (!basic) {
    append_pair(body, "client_id", settings.client_id);
    append_pair(body, "client_secret", secret);
  }
  head.clear();
  head.method = "POST";
  head.target = url.origin.label() + url.path;
  head.fields.add("Host", url.origin.authority());
  head.fields.add("Accept", "application/json");
  head.fields.add("Content-Type", "application/x-www-form-urlencoded");
  if (basic) {
    const std::string pair = form_encoded(settings.client_id) + ':' + form_encoded(secret);
    head.fields.add("Authorization", "Basic " + tls::base64(pair));
    head.fields.mark_sensitive();
  }
  head.framing = http::Framing::length;
  head.length = body.size();
  return body;
}

}  // namespace carpool::proxy
