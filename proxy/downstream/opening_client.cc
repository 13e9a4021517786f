#include "proxy/downstream/opening_client.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "proxy/exchange/exchange_context.h"

namespace carpool::proxy {

namespace {
constexpr Duration kOpeningTime = std::chrono::seconds(1);  // of a drained client: its first request may be on the way
}  // namespace

OpeningClient::OpeningClient(const ExchangeContext& context, Listener& listener)
    : context_(context),
      listener_(listener),
      deadline_(exec::Timer::bind<&OpeningClient::on_deadline>(context.loop, *this)) {}

void OpeningClient::drain() {
  if (over_ || std::exchange(draining_, true)) return;
  deadline_.arm(std::min(deadline_.deadline(), context_.loop.now() + kOpeningTime));
}

bool OpeningClient::end_if_idle() {
  end();
  return true;
}

}  // namespace carpool::proxy
