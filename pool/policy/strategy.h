// Strategy, Evict: how an idle connection is chosen: to be lent, and to be closed. Settings of a pool by these names.
#pragma once

#include <cstdint>

namespace carpool::pool {

// Where a search for an idle entry starts and how it continues.
//   first         the own loop's last released entry, its lowest position, then other loops': few connections stay hot,
//                 the others idle until they are closed
//   thread_id     as first, but starts at a position given by the caller: the affinity key
//   random, round_robin   any entry of any loop: spreads use over all, at the price of a takeover
enum class Strategy : std::uint8_t { first, random, thread_id, round_robin };

// Which idle connection is evicted: the least recently used or the least often used one.
enum class Evict : std::uint8_t { last_use, least_used };

}  // namespace carpool::pool
