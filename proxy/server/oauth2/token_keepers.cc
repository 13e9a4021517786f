#include "proxy/server/oauth2/token_keepers.h"

#include <unordered_set>

#include "exec/fan_out.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/server/worker.h"
#include "proxy/upstream/origin/credentials.h"
#include "proxy/upstream/origin/origin_registry.h"

namespace carpool::proxy {

TokenKeepers::TokenKeepers(const ExchangeContext& context, const Workers& workers)
    : context_(context), workers_(workers) {
  point_.set(settings_);
}

TokenKeepers::~TokenKeepers() = default;

void TokenKeepers::sweep() {
  std::unordered_set<const Credentials*> wanted;
  for (Credentials* const one : context_.origins.all_credentials()) {
    if (one->token() == nullptr) continue;
    wanted.insert(one);
    std::unique_ptr<TokenKeeper>& keeper = keepers_[one];
    if (!keeper) {
      const exec::Bound news = exec::Bound::to<&TokenKeepers::notify_waiters>(*this);
      keeper = std::make_unique<TokenKeeper>(context_, point_, *one, news);
    }
    keeper->start();
  }
  bool stopped = false;
  std::erase_if(keepers_, [&](const auto& known) {
    exec::assume_on_loop();
    if (wanted.contains(known.first)) return false;
    const bool now = known.second->stop();
    stopped |= now;
    return !now && !known.second->wanted_in_flight();
  });
  if (stopped) notify_waiters();  // they then use the credentials in force
}

void TokenKeepers::stop() {
  for (const auto& known : keepers_) static_cast<void>(known.second->stop());
}

void TokenKeepers::notify_waiters() {
  exec::post_to_loops(workers_, [](Worker& worker) LOOP_ONLY { worker.on_token_changed(); });
}

}  // namespace carpool::proxy
