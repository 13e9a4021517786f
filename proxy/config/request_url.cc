#include "proxy/config/request_url.h"

#include <algorithm>
#include <utility>

namespace carpool::proxy::config {
namespace {

constexpr std::size_t kMaxUrl = 2048;

Fault bad_url(std::string why) {
  return {FaultKind::malformed_request, Side::self, std::move(why)};
}

}  // namespace

Result<RequestUrl> parse_request_url(std::string_view text) {
  if (text.size() > kMaxUrl) return bad_url("is longer than " + std::to_string(kMaxUrl) + " bytes");
  const std::size_t scheme = text.find("://");
  if (scheme == std::string_view::npos) return bad_url("has no scheme");
  const std::size_t path = std::min(text.find_first_of("/?#", scheme + 3), text.size());
  if (path != text.size() && text[path] != '/') return bad_url("has no path");
  const bool visible = std::all_of(text.begin() + static_cast<std::ptrdiff_t>(path), text.end(),
                                   [](char c) { return c > ' ' && c < 0x7F; });
  if (!visible || text.find('#', path) != std::string_view::npos) return bad_url("has a path that cannot be requested");
  if (text.substr(0, path).find('@') != std::string_view::npos) return bad_url("has a user name");
  Result<pool::Origin> origin = pool::parse_origin(text.substr(0, path));
  // A password with a slash is cut there: the part before it must not be quoted.
  if (!origin && text.find('@') != std::string_view::npos) return bad_url("has a user name, or no valid host");
  if (!origin) return bad_url(origin.fault().detail);
  if (origin->scheme == pool::Scheme::tcp) return bad_url("is neither http nor https");
  return RequestUrl{std::move(*origin), std::string(text.substr(path))};
}

}  // namespace carpool::proxy::config
