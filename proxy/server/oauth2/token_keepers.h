// TokenKeepers: the keepers of all origins with [origin.oauth2]. Lives on the first worker's loop.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>

#include "proxy/server/oauth2/token_keeper.h"
#include "proxy/server/workers.h"

namespace carpool::proxy {

class TokenKeepers final {
 public:
  // `context`: the first worker's.
  TokenKeepers(const ExchangeContext& context, const Workers& workers);
  // The loops must have ended and been drained, so that no mail to a keeper is in flight.
  ~TokenKeepers();

  // Follows the configuration in force. Must be called periodically: the keeper of a token that is no longer configured
  // stops at the first call, and is destroyed by a later one, when no mail to it is in flight.
  void sweep() LOOP_ONLY;
  void stop() LOOP_ONLY;
  std::size_t size() const { return keepers_.size(); }

 private:
  void notify_waiters();

  const ExchangeContext& context_;
  const Workers& workers_;
  config::Listen settings_;  // settings of a listener that accepts no clients
  ListenPoint point_;
  std::unordered_map<const Credentials*, std::unique_ptr<TokenKeeper>> keepers_;
};

}  // namespace carpool::proxy
