#include "proxy/server/oauth2/token_keepers.h"

#include <algorithm>

#include "exec/fan_out.h"
#include "proxy/server/worker.h"
#include "proxy/upstream/origin/credentials.h"

namespace carpool::proxy {

TokenKeepers::~TokenKeepers() = default;

void TokenKeepers::sweep() {
  std::vector<Credentials*> wanted = origins_.all_credentials();
  std::erase_if(wanted, [](const Credentials* one) { return one->token() == nullptr; });
  const auto keeps = [](const TokenKeeper& keeper, const Credentials* one) { return keeper.keeps(*one); };
  for (Credentials* const one : wanted) {
    auto known = std::find_if(keepers_.begin(), keepers_.end(), [&](const auto& k) { return keeps(*k, one); });
    if (known == keepers_.end()) {
      point_.set(settings_);
      const ExchangeContext& context = workers_.front()->parts.exchange_context;
      keepers_.push_back(
          std::make_unique<TokenKeeper>(context, point_, *one, exec::Bound::to<&TokenKeepers::notify_waiters>(*this)));
      known = keepers_.end() - 1;
    }
    (*known)->start();
  }
  bool stopped = false;
  for (const std::unique_ptr<TokenKeeper>& keeper : keepers_) {
    const bool in_force =
        std::any_of(wanted.begin(), wanted.end(), [&](const auto* one) { return keeps(*keeper, one); });
    if (!in_force) stopped |= keeper->stop();
  }
  if (stopped) notify_waiters();  // they then use the credentials in force
}

void TokenKeepers::stop() {
  for (const std::unique_ptr<TokenKeeper>& keeper : keepers_) static_cast<void>(keeper->stop());
}

void TokenKeepers::notify_waiters() {
  exec::post_to_loops(workers_, [](Worker& worker) LOOP_ONLY { worker.on_token_news(); });
}

}  // namespace carpool::proxy
