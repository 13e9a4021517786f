// TokenKeeper: keeps one origin's token valid, on the first worker's loop. Sends one request for a token at a time,
// before the current one expires, with pauses after failures.
#pragma once

#include <optional>

#include "exec/coalesced_mail.h"
#include "exec/timer.h"
#include "metrics/events.h"
#include "proxy/config/token_url.h"
#include "proxy/server/oauth2/token_schedule.h"
#include "proxy/server/own_request.h"

namespace carpool::proxy {

class Credentials;

class TokenKeeper final {
 public:
  // `news`: called when waiting requests must check the token again.
  TokenKeeper(const ExchangeContext& context, const ListenPoint& point, Credentials& credentials, exec::Bound news);

  void start() LOOP_ONLY;
  bool stop() LOOP_ONLY;  // returns true if the keeper was running; the token stays in force until its end
  // Returns true if the keeper must not be destroyed yet although it was stopped. Any call of the loop after stop().
  bool wanted_in_flight() const { return wanted_.posted(); }

 private:
  void step() LOOP_ONLY;
  void fetch() LOOP_ONLY;
  void on_due();
  void on_wanted();
  void on_timeout();
  void on_fetched();
  void failed(metrics::TokenRequest end, const Fault& fault) LOOP_ONLY;
  void count(metrics::TokenRequest end) LOOP_ONLY;

  const ExchangeContext& context_;
  Credentials& credentials_;
  const exec::Bound news_;
  const config::TokenUrl url_;
  TokenSchedule schedule_;
  OwnRequest fetch_;
  exec::CoalescedMail wanted_;
  exec::Timer due_, timeout_;
  bool running_ = false;
};

}  // namespace carpool::proxy
