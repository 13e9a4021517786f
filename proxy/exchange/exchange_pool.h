// ExchangePool: the exchanges of one loop. They are freed only with the pool, so a grant that arrives late points to
// live memory. In steady state nothing is allocated.
#pragma once

#include <memory>
#include <vector>

#include "base/intrusive.h"
#include "proxy/exchange/exchange.h"

namespace carpool::proxy {

class ExchangePool {
 public:
  // `context` may still be under construction; it is used later.
  explicit ExchangePool(const ExchangeContext& context) : context_(context) {}

  Exchange& acquire() LOOP_ONLY {
    if (!free_.empty()) return free_.pop_front();
    all_.push_back(std::make_unique<Exchange>(context_));
    return *all_.back();
  }
  void give_back(Exchange& exchange) LOOP_ONLY {
    exchange.release_buffers();
    free_.push_front(exchange);
  }
  // Adds an exchange that waits for its origin's token. An exchange in use is in no other list.
  void await_token(Exchange& exchange) LOOP_ONLY { waiting_.push_back(exchange); }
  void on_token_changed() LOOP_ONLY {
    List<Exchange, ExchangeTag> notified;
    while (!waiting_.empty()) notified.push_back(waiting_.pop_front());
    while (!notified.empty()) notified.pop_front().on_token_changed();
  }
  // Calls `visit` for every exchange, also for idle ones.
  template <class Visit>
  void for_each(Visit visit) const LOOP_ONLY {
    for (const std::unique_ptr<Exchange>& exchange : all_) visit(*exchange);
  }

 private:
  const ExchangeContext& context_;
  std::vector<std::unique_ptr<Exchange>> all_ LOOP_LOCAL;
  List<Exchange, ExchangeTag> free_ LOOP_LOCAL, waiting_ LOOP_LOCAL;
};

}  // namespace carpool::proxy
