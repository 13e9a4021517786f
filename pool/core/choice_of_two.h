// acquire_less_loaded(): the search of a pool whose entries lead to several addresses. It only chooses where to try
// first: the ordinary search follows, whose guarantees do not depend on it.
#pragma once

#include "pool/core/pool.h"
#include "pool/policy/endpoint.h"

namespace carpool::pool {

// Draws two addresses, not connections, so that the number of connections to an address does not matter, and takes an
// entry of the less loaded one, else of the other one. Returns false if none of both has one that `matcher` accepts.
// address_of(entry): its Endpoint, or null.
template <class T, class AddressOf, class Matcher>
bool acquire_less_loaded(Pool<T>& pool, const Endpoints& endpoints, AddressOf&& address_of, const SearchHint& where,
                         Instant now, Matcher& matcher, typename Pool<T>::Found& found) {
  const auto acquire_at = [&](const Endpoint* address) {
    Entry<T>* const entry = pool.draw(where.loop, [&](const Entry<T>& drawn, EntryWord word) {
      return address_of(drawn) == address && matcher(drawn, word) == Match::take;
    });
    return entry != nullptr && pool.acquire_entry(*entry, where, matcher, found);
  };
  const auto [one, other] = endpoints.draw(pool.next_random(where.loop));
  if (one == nullptr) return false;
  if (other == nullptr) return acquire_at(one);
  const Endpoint* const chosen =
      &Endpoint::choose(*one, *other, endpoints.slow_start(), now, pool.next_random(where.loop) >> 16);
  return acquire_at(chosen) || acquire_at(chosen == one ? other : one);
}

}  // namespace carpool::pool
