// take_less_loaded(): the search of a pool whose entries lead to several addresses. It only chooses where to try first:
// the ordinary search follows, whose guarantees do not depend on it.
#pragma once

#include "pool/core/pool.h"
#include "pool/policy/endpoint.h"

namespace carpool::pool {

// Draws entries until two that `matcher` accepts lead to different addresses, and takes the one whose address is less
// loaded. Returns false if none was found or both were taken meanwhile. address_of(entry): its Endpoint, or null.
template <class T, class AddressOf, class Matcher>
bool take_less_loaded(Pool<T>& pool, const Endpoints& endpoints, AddressOf&& address_of, const SearchHint& where,
                      Instant now, Matcher& matcher, typename Pool<T>::Found& found) {
  constexpr unsigned kMaxDraws = 8;
  Entry<T>* first = nullptr;
  Entry<T>* second = nullptr;
  Endpoint* one = nullptr;
  Endpoint* other = nullptr;
  const auto fits = [&](const Entry<T>& entry, EntryWord word) { return matcher(entry, word) == Match::take; };
  for (unsigned draws = 0; draws < kMaxDraws && second == nullptr; ++draws) {
    Entry<T>* drawn = pool.draw(where.loop, fits);
    Endpoint* endpoint = drawn == nullptr ? nullptr : address_of(*drawn);
    if (endpoint == nullptr) continue;
    if (first == nullptr) {
      first = drawn;
      one = endpoint;
    } else if (endpoint != one) {
      second = drawn;
      other = endpoint;
    }
  }
  if (first == nullptr) return false;
  if (second == nullptr) return pool.take(*first, where, matcher, found);
  const Endpoint& chosen =
      Endpoint::choose(*one, *other, endpoints.slow_start(), now, pool.next_random(where.loop) >> 16);
  Entry<T>& best = &chosen == one ? *first : *second;
  Entry<T>& rest = &chosen == one ? *second : *first;
  return pool.take(best, where, matcher, found) || pool.take(rest, where, matcher, found);
}

}  // namespace carpool::pool
