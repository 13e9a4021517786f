#include "proxy/exchange/request_rules.h"

#include "pool/destination/destination.h"
#include "proxy/exchange/client_stream.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/telemetry/log.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

std::optional<Fault> refused_by_rules(const ExchangeContext& context, const OriginRuntime& origin,
                                      const ClientStream& client, const http::RequestHead& request,
                                      const http::Target& target) {
  if (origin.allows(request.method, target.path)) return std::nullopt;
  context.stats.count_refused(origin.slot);
  constexpr std::size_t kMaxShown = 256;
  // The query is left out, because it may hold a secret.
  const std::string_view path = target.path.substr(0, target.path.find('?'));
  log::warn("egress", "refused by the rules of the origin",
            {{"origin", origin.destination->label()},
             {"client", client.peer()},
             {"method", request.method.substr(0, kMaxShown)},
             {"path", path.substr(0, kMaxShown)}});
  return Fault{FaultKind::egress_denied, Side::self, "no rule of the origin (allow) matches the request"};
}

}  // namespace carpool::proxy
