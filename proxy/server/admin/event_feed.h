// Feed: the server-sent events of /events. Once a second the state of everything is rendered, pool by pool, for all
// listeners together: who has just come gets the whole of it ("state"), the others only the pools that look different
// from the second before ("change"). Times are told as moments, not as ages, so that what rests costs nothing.
#pragma once

#include <string>
#include <unordered_map>

#include "proxy/server/admin/route.h"

namespace carpool::proxy::admin {

// The head of the stream; the server sends the events.
Response events_answer(const Call& call);

class Feed {
 public:
  void update(const AdminView& view);
  const std::string& whole() const { return whole_; }
  const std::string& changes() const { return changes_; }

 private:
  std::unordered_map<std::string, std::string> pools_;  // as they were told last, by label
  std::string whole_, changes_;
};

}  // namespace carpool::proxy::admin
