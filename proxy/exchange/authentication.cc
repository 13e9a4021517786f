#include "proxy/exchange/authentication.h"

#include "proxy/exchange/client_credentials.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/listen_point.h"
#include "proxy/http/proxy_authorization.h"
#include "proxy/telemetry/loop_stats.h"

namespace carpool::proxy {

namespace {
using Result = metrics::Authentication;

const char* words_of(Result result) {
  switch (result) {
    case Result::missing:
      return "the listener needs credentials (Proxy-Authorization)";
    case Result::malformed:
      return "Proxy-Authorization is not one field with Basic or Bearer credentials";
    case Result::rejected:
    case Result::accepted:
      break;
  }
  return "the credentials in Proxy-Authorization are not those of a user of this listener";
}

Result judge(const ClientCredentials& credentials, const http::Fields& fields, std::string& user) {
  http::DecodedCredentials decoded;
  const http::ProxyAuthorization given = http::read_proxy_authorization(fields, decoded);
  if (given.form == http::ProxyAuthorization::Form::absent) return Result::missing;
  if (given.form == http::ProxyAuthorization::Form::malformed) return Result::malformed;
  const std::string* const name = credentials.user_of(given);
  if (name == nullptr) return Result::rejected;
  user = *name;
  return Result::accepted;
}
}  // namespace

std::optional<Result> authenticate(const ListenPoint& listener, const http::Fields& fields, std::string& user) {
  const ClientCredentials* const credentials = listener.credentials();
  return credentials == nullptr ? std::nullopt : std::optional(judge(*credentials, fields, user));
}

std::optional<Fault> refuse_stranger(const ExchangeContext& context, const ListenPoint& listener,
                                     const http::Fields& fields, std::string& user) {
  // Read once: a reload on another loop may store another list at any moment.
  const ClientCredentials* const credentials = listener.credentials();
  if (credentials == nullptr) return std::nullopt;
  const Result result = judge(*credentials, fields, user);
  context.stats.count_authentication(result);
  if (result == Result::accepted) return std::nullopt;
  Fault fault(FaultKind::not_authenticated, Side::self, words_of(result));
  fault.challenge = credentials->challenge();
  return fault;
}

}  // namespace carpool::proxy
