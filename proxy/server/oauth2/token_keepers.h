// TokenKeepers: the keepers of all origins with [origin.oauth2]. Lives on the first worker's loop.
#pragma once

#include <memory>
#include <vector>

#include "proxy/server/oauth2/token_keeper.h"
#include "proxy/server/workers.h"

namespace carpool::proxy {

class OriginRegistry;

class TokenKeepers final {
 public:
  TokenKeepers(OriginRegistry& origins, const Workers& workers) : origins_(origins), workers_(workers) {}
  // The loops must have ended and been drained, so that no mail to a keeper is in flight.
  ~TokenKeepers();

  // Follows the configuration in force. Must be called periodically.
  void sweep() LOOP_ONLY;
  void stop() LOOP_ONLY;

 private:
  void notify_waiters();

  OriginRegistry& origins_;
  const Workers& workers_;
  config::Listen settings_;  // settings of a listener that accepts no clients
  ListenPoint point_;
  std::vector<std::unique_ptr<TokenKeeper>> keepers_;  // one for each token since the start
};

}  // namespace carpool::proxy
