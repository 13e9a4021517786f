#include "proxy/exchange/authentication.h"

#include "proxy/exchange/client_credentials.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/listen_point.h"
#include "proxy/http/proxy_authorization.h"
#include "proxy/telemetry/loop_stats.h"

namespace carpool::proxy {

namespace {
using Seen = metrics::Authentication;

const char* words_of(Seen result) {
  switch (result) {
    case Seen::missing:
      return "the listener needs credentials (Proxy-Authorization)";
    case Seen::malformed:
      return "Proxy-Authorization is not one field with Basic or Bearer credentials";
    case Seen::rejected:
    case Seen::accepted:
      break;
  }
  return "the credentials in Proxy-Authorization are not those of a user of this listener";
}

Seen compare(const ClientCredentials& credentials, const http::Fields& fields, std::string& user) {
  http::DecodedCredentials decoded;
  const http::ProxyAuthorization given = http::read_proxy_authorization(fields, decoded);
  if (given.form == http::ProxyAuthorization::Form::absent) return Seen::missing;
  if (given.form == http::ProxyAuthorization::Form::malformed) return Seen::malformed;
  const std::string* const name = credentials.user_of(given);
  if (name == nullptr) return Seen::rejected;
  user = *name;
  return Seen::accepted;
}
}  // namespace

std::optional<Seen> authenticate(const ListenPoint& listener, const http::Fields& fields, std::string& user) {
  const ClientCredentials* const credentials = listener.credentials();
  return credentials == nullptr ? std::nullopt : std::optional(compare(*credentials, fields, user));
}

std::optional<Fault> check_authentication(const ExchangeContext& context, const ListenPoint& listener,
                                          const http::Fields& fields, std::string& user) {
  // Loads the list once, because a reload on another loop may store another one at any moment.
  const ClientCredentials* const credentials = listener.credentials();
  if (credentials == nullptr) return std::nullopt;
  const Seen result = compare(*credentials, fields, user);
  context.stats.count(result);
  if (result == Seen::accepted) return std::nullopt;
  Fault fault(FaultKind::not_authenticated, Side::self, words_of(result));
  fault.challenge = credentials->challenge();
  return fault;
}

}  // namespace carpool::proxy
