// EventFeed: the server-sent events of /events. Once a second it renders the state, pool by pool, for all listeners
// together: a new listener receives all of it ("state") as of the last rendering, the others only the pools that
// changed since the one before ("change"). Times are absolute, not ages, so that idle connections cause no changes.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "proxy/server/admin/event.h"
#include "proxy/server/admin/route.h"

namespace carpool::proxy::admin {

// Returns the head of the stream; the server sends the events.
Response events_response(const Call& call);

class EventFeed {
 public:
  void update(const AdminView& view);
  void clear();  // frees the memory
  const Event& event() const { return event_; }
  Event greeting() const { return {event_.whole, nullptr}; }
  std::uint64_t renderings() const { return renderings_.load(std::memory_order_relaxed); }  // any thread

 private:
  std::unordered_map<std::string, std::string> pools_;  // the last rendering of each pool, by label
  Event event_;
  std::atomic<std::uint64_t> renderings_{0};  // relaxed, no partner: a statistic
};

}  // namespace carpool::proxy::admin
