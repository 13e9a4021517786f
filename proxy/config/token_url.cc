#include "proxy/config/token_url.h"

#include <string>

namespace carpool::proxy::config {

Result<TokenUrl> parse_token_url(std::string_view text) {
  const auto bad = [](std::string why) { return Fault{FaultKind::malformed_request, Side::self, std::move(why)}; };
  Result<TokenUrl> url = parse_request_url(text);
  if (!url) return url;
  if (url->path.empty()) return bad("has no path");
  const std::string& host = url->origin.host;
  const bool here = host == "localhost" || host == "::1" || (url->origin.is_ip_literal() && host.starts_with("127."));
  if (url->origin.scheme == pool::Scheme::http && !here) return bad("is neither https nor on this host");
  return url;
}

}  // namespace carpool::proxy::config
