// EventFeed: the server-sent events of /events. Once a second it renders the state, pool by pool, for all listeners
// together: a new listener receives all of it ("state"), the others only the pools that changed within the second
// ("change"). Times are absolute, not ages, so that idle connections cause no changes.
#pragma once

#include <string>
#include <unordered_map>

#include "proxy/server/admin/route.h"

namespace carpool::proxy::admin {

// Returns the head of the stream; the server sends the events.
Response events_response(const Call& call);

class EventFeed {
 public:
  void update(const AdminView& view);
  const std::string& whole() const { return whole_; }
  const std::string& changes() const { return changes_; }

 private:
  std::unordered_map<std::string, std::string> pools_;  // the last rendering of each pool, by label
  std::string whole_, changes_;
};

}  // namespace carpool::proxy::admin
