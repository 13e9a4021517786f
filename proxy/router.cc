#include "proxy/router.h"

#include <cstdint>
#include <utility>

namespace carpool::proxy {

namespace {
constexpr std::size_t kMaxCached = 8192;  // then it starts anew: names that clients make up cost memory only so long
}

Result<const Route*> Router::route(const config::Listen& listen, const http::Target& target) {
  key_.clear();
  key_.push_back(target.form == http::TargetForm::absolute ? 'a' : 'o');
  key_.push_back(static_cast<char>('0' + static_cast<int>(target.scheme)));
  const auto address = reinterpret_cast<std::uintptr_t>(&listen);
  key_.append(reinterpret_cast<const char*>(&address), sizeof address);
  key_.append(target.authority);
  if (const auto found = cache_.find(key_); found != cache_.end()) return &found->second;
  Result<Route> made = resolve(listen, target);
  if (!made) return made.take_fault();
  if (cache_.size() >= kMaxCached) cache_.clear();
  return &cache_.emplace(key_, std::move(*made)).first->second;
}

Result<Route> Router::resolve(const config::Listen& listen, const http::Target& target) {
  Result<pool::Origin> origin = where(listen, target);
  if (!origin) return origin.take_fault();
  if (Status asked = policy_.may_ask(*origin); !asked) return asked.take_fault();
  Result<OriginContext*> context = origins_.at(*origin);
  if (!context) return context.take_fault();
  Route route;
  route.origin = *context;
  const bool keep_host = listen.preserve_host && target.form != http::TargetForm::absolute;
  route.host = keep_host ? std::string(target.authority) : (*context)->authority;
  return route;
}

// CONTRACT "Addressing a request", row by row.
Result<pool::Origin> Router::where(const config::Listen& listen, const http::Target& target) const {
  if (target.form == http::TargetForm::authority) return pool::canonical_origin(pool::Scheme::tcp, target.authority);
  const bool absolute = target.form == http::TargetForm::absolute;
  if (!absolute && !listen.origin.empty()) return pool::parse_origin(listen.origin);
  Result<pool::Origin> named = pool::canonical_origin(target.scheme, target.authority);
  if (!named || named->scheme != pool::Scheme::http) return named;
  if (named->port == 80) {
    if (const config::OriginSettings* settings = origins_.alias(named->host)) return settings->origin;
  }
  if (!absolute && !listen.route_by_host) {
    return Fault{FaultKind::egress_denied, Side::client,
                 "no origin has the alias " + named->host + ", and route_by_host is off"};
  }
  return named;
}

}  // namespace carpool::proxy
