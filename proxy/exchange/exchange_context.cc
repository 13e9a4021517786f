#include "proxy/exchange/exchange_context.h"

#include "proxy/exchange/overload_state.h"

namespace carpool::proxy {

bool ExchangeContext::keeps_clients() const {
  return !draining && !overload.is_shedding(ShedLevel::keep_alive);
}

}  // namespace carpool::proxy
