#include "proxy/exchange/exchange_context.h"

#include "proxy/exchange/overload_state.h"
#include "proxy/http/date_cache.h"

namespace carpool::proxy {

std::string_view ExchangeContext::date() const {
  return dates.at(loop.now());
}

bool ExchangeContext::keeps_clients() const {
  return !draining && !overload.is_shedding(ShedLevel::keep_alive);
}

}  // namespace carpool::proxy
