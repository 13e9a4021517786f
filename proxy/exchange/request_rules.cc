#include "proxy/exchange/request_rules.h"

#include <string>
#include <string_view>

#include "pool/destination/destination.h"
#include "proxy/exchange/client_stream.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/http/override_fields.h"
#include "proxy/http/redact.h"
#include "proxy/telemetry/log.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

namespace {
// An origin may execute any combination of the request's own method and path with those of the override fields.
bool allowed(const OriginRuntime& origin, const http::RequestHead& request, const http::Target& target,
             const http::Overrides& overrides) {
  if (!origin.allows(request.method, target.path) || overrides.differ) return false;
  const bool method = !overrides.method.empty(), path = !overrides.path.empty();
  return (!method || origin.allows(overrides.method, target.path)) &&
         (!path || origin.allows(request.method, overrides.path)) &&
         (!method || !path || origin.allows(overrides.method, overrides.path));
}

constexpr std::size_t kMaxShown = 256;
// The query is left out, because it may hold a secret. Those in the path, or before the host of an override field, are
// masked first, because a password may contain a question mark.
std::string shown_path(std::string_view path) {
  std::string scratch;
  const std::string_view masked = http::redacted(path, scratch, std::string::npos);
  return std::string(masked.substr(0, masked.find('?')).substr(0, kMaxShown));
}
}  // namespace

std::optional<Fault> refused_by_rules(const ExchangeContext& context, const OriginRuntime& origin,
                                      const ClientStream& client, const http::RequestHead& request,
                                      const http::Target& target) {
  if (!origin.restricted) return std::nullopt;
  const http::Overrides overrides = http::overrides_of(request.fields);
  if (allowed(origin, request, target, overrides)) return std::nullopt;
  context.stats.count_refused(origin.slot);
  const std::string path = shown_path(target.path), override_path = shown_path(overrides.path);
  log::warn("egress", "refused by the rules of the origin",
            {{"origin", origin.destination->label()},
             {"client", client.peer()},
             {"method", request.method.substr(0, kMaxShown)},
             {"path", path},
             {"override_method", std::string_view(overrides.method).substr(0, kMaxShown)},
             {"override_path", override_path}});
  return Fault{FaultKind::egress_denied, Side::self,
               overrides.method.empty() && overrides.path.empty()
                   ? "no rule of the origin (allow) matches the request"
                   : "no rule of the origin (allow) matches the request with its override fields"};
}

}  // namespace carpool::proxy
