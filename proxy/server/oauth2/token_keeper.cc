#include "proxy/server/oauth2/token_keeper.h"

#include <chrono>
#include <utility>

#include "proxy/config/secret.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/http/error_reply.h"
#include "proxy/server/oauth2/token_reply.h"
#include "proxy/server/oauth2/token_request.h"
#include "proxy/telemetry/log.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/origin/credentials.h"
#include "proxy/upstream/origin/oauth_token.h"
#include "proxy/upstream/origin/origin_registry.h"

namespace carpool::proxy {

namespace {
constexpr OwnRequestKind kTokenFetch{"carpool oauth2", "the token endpoint", kMaxTokenReply, true};

// Returns a seed that differs between processes and origins; never 0.
std::uint64_t seed_of(const Credentials& credentials) {
  const auto time = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  return (time ^ std::hash<std::string>{}(credentials.label())) | 1U;
}

// The text was validated with the configuration.
config::TokenUrl url_of(const Credentials& credentials) {
  return *config::parse_token_url(credentials.token()->settings().token_url);
}

// Replaces a fault whose status would blame the client's request.
Fault of_endpoint(Fault fault) {
  if (http::fault_status(fault.kind).status < 502) fault.kind = FaultKind::unroutable;
  return fault;
}
}  // namespace

TokenKeeper::TokenKeeper(const ExchangeContext& context, const ListenPoint& point, Credentials& credentials,
                         exec::Bound news)
    : context_(context),
      credentials_(credentials),
      news_(news),
      url_(url_of(credentials)),
      schedule_(seed_of(credentials)),
      fetch_(context, point, kTokenFetch, exec::Bound::to<&TokenKeeper::on_fetched>(*this)),
      wanted_(context.loop, exec::Bound::to<&TokenKeeper::on_wanted>(*this)),
      due_(exec::Timer::bind<&TokenKeeper::on_due>(context.loop, *this)),
      timeout_(exec::Timer::bind<&TokenKeeper::on_timeout>(context.loop, *this)) {
  // A token that an earlier keeper was granted.
  const OAuthToken& token = *credentials.token();
  if (token.serial() != 0) schedule_.inherited(context.loop.now(), token.end());
}

void TokenKeeper::start() {
  if (std::exchange(running_, true)) return;
  credentials_.token()->keep_by(wanted_);
  step();
}

bool TokenKeeper::stop() {
  if (!std::exchange(running_, false)) return false;
  due_.disarm();
  timeout_.disarm();
  if (schedule_.fetching()) {
    fetch_.cancel();
    schedule_.failed(context_.loop.now());
  }
  credentials_.token()->leave({FaultKind::response_timeout, Side::self, "a reload has changed oauth2"});
  return true;
}

void TokenKeeper::step() {
  if (!running_) return;
  for (;;) {
    switch (schedule_.due(context_.loop.now())) {
      case TokenSchedule::Action::none:
        return due_.arm(schedule_.next());
      case TokenSchedule::Action::expire:
        credentials_.token()->expire();
        log::warn("credentials", "the token expired before a new one was granted", {{"origin", credentials_.label()}});
        break;
      case TokenSchedule::Action::fetch:
        fetch();
        break;
    }
  }
}

void TokenKeeper::on_due() {
  exec::assume_on_loop();
  step();
}

void TokenKeeper::on_wanted() {
  exec::assume_on_loop();
  schedule_.refused(context_.loop.now());
  step();
}

void TokenKeeper::fetch() {
  OAuthToken& token = *credentials_.token();
  token.begin_fetch();
  timeout_.arm(context_.loop.now() + token.settings().timeout);
  std::string secret = credentials_.client_secret();
  std::string body = write_token_request(fetch_.prepare(), token.settings(), url_, secret);
  config::wipe(secret);
  fetch_.send(body);
  config::wipe(body);
}

void TokenKeeper::on_timeout() {
  exec::assume_on_loop();
  fetch_.cancel();
  failed(metrics::TokenRequest::timeout,
         {FaultKind::response_timeout, Side::self, "the token endpoint did not answer within oauth2.timeout"});
  step();
}

void TokenKeeper::on_fetched() {
  exec::assume_on_loop();
  timeout_.disarm();
  if (fetch_.fault()) {
    const bool answered = fetch_.status() != 0;
    failed(answered ? metrics::TokenRequest::unusable : metrics::TokenRequest::failed, of_endpoint(*fetch_.fault()));
    return step();
  }
  Result<Token> token = read_token(fetch_.status(), fetch_.body());
  if (!token) {
    const bool refused = refuses_token(fetch_.status());
    failed(refused ? metrics::TokenRequest::refused : metrics::TokenRequest::unusable, token.fault());
    return step();
  }
  schedule_.granted(context_.loop.now(), token->lifetime);
  count(metrics::TokenRequest::granted);
  credentials_.token()->grant(std::move(token->value), schedule_.end());
  log::info("credentials", "a token was granted",
            {{"origin", credentials_.label()},
             {"seconds", std::chrono::duration_cast<std::chrono::seconds>(token->lifetime).count()}});
  news_();
  step();
}

void TokenKeeper::count(metrics::TokenRequest end) {
  const Result<pool::Origin> origin = pool::parse_origin(credentials_.label());
  const Result<OriginRuntime*> runtime = origin ? context_.origins.at(*origin) : Result<OriginRuntime*>(origin.fault());
  if (runtime) context_.stats.count((*runtime)->slot, end);
}

void TokenKeeper::failed(metrics::TokenRequest end, const Fault& fault) {
  count(end);
  schedule_.failed(context_.loop.now());
  log::warn("credentials", "no token was granted",
            {{"origin", credentials_.label()},
             {"token_url", url_.origin.label()},
             {"failures", schedule_.failures()},
             {"error", fault.detail}});
  credentials_.token()->fail(fault);
  news_();
}

}  // namespace carpool::proxy
