#include "proxy/exchange/router.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "proxy/exchange/routing_mode.h"
#include "proxy/net/egress_policy.h"
#include "proxy/upstream/origin/egress_log.h"

namespace carpool::proxy {

namespace {
constexpr std::size_t kMaxCached = 8192;  // the cache is then cleared, so that names invented by clients do not grow it
// Longer keys are not cached: one authority has unlimited spellings, because its port may have leading zeros. The key
// of the longest name is shorter, except inside a CONNECT to such a name.
constexpr std::size_t kMaxCachedLength = 512;

// No other key begins with these characters, and a host contains no 0. The origin's label would need an allocation.
void write_intercepted(const Interception& inside, std::string& key) {
  const std::uint16_t port = inside.origin.port;
  key.push_back(inside.other_name ? '!' : '=');
  key.append(reinterpret_cast<const char*>(&port), sizeof port);
  key.append(inside.origin.host).push_back('\0');
}
}  // namespace

Result<const Route*> Router::route(const ListenPoint& listener, bool secured, const http::Target& target) {
  write_key(listener, secured, target);
  if (const auto found = cache_.find(key_); found != cache_.end()) return &found->second;
  Result<Route> made = resolve(listener, secured, target);
  if (!made) return made.take_fault();
  if (key_.size() > kMaxCachedLength) return &uncached_.emplace(std::move(*made));
  if (cache_.size() >= kMaxCached) forget();
  return &cache_.emplace(key_, std::move(*made)).first->second;
}

void Router::forget() {
  cache_.clear();
}

// Omits the authority from the key if every Host leads to the fixed origin, so that invented names do not fill the
// cache.
void Router::write_key(const ListenPoint& listener, bool secured, const http::Target& target) {
  const config::Listen& listen = listener.settings();
  key_.clear();
  if (const Interception* inside = listener.interception(); inside != nullptr) write_intercepted(*inside, key_);
  key_.push_back(secured ? 's' : 'p');
  key_.push_back(target.form == http::TargetForm::absolute ? 'a' : target.named ? 'n' : 'h');
  key_.push_back(static_cast<char>('0' + static_cast<int>(target.scheme)));
  const auto address = reinterpret_cast<std::uintptr_t>(&listen);
  key_.append(reinterpret_cast<const char*>(&address), sizeof address);
  if (listen.origin.empty() || listen.preserve_host || target.named) key_.append(target.authority);
}

Result<Route> Router::resolve(const ListenPoint& listener, bool secured, const http::Target& target) {
  const config::Listen& listen = listener.settings();
  const Result<RoutingMode> mode = routing_mode_of(listener, secured);
  if (!mode) return mode.fault();
  Result<pool::Origin> origin = std::visit([&](const auto& one) { return one.origin_of(target, origins_); }, *mode);
  if (!origin) return origin.take_fault();
  std::optional<Fault> reported;
  const bool resolved = !origins_.through_parent(*origin);
  if (Status asked = policy_.may_ask(*origin, &reported, resolved); !asked) {
    log_egress_denied(origin->label(), asked.fault());
    return asked.take_fault();
  }
  Result<OriginRuntime*> context = origins_.enter(*origin);
  if (!context) return context.take_fault();
  if (reported && !(*context)->reported.exchange(true, std::memory_order_relaxed))
    log_egress_reported(origin->label(), *reported);
  Route route;
  route.origin = *context;
  const bool own_scheme = secured && target.scheme == pool::Scheme::https;
  const bool of_plain_client = target.form != http::TargetForm::absolute || own_scheme;
  const bool keep_host = listen.preserve_host && of_plain_client && !target.authority.empty();
  route.host = keep_host ? std::string(target.authority) : (*context)->authority;
  return route;
}

}  // namespace carpool::proxy
