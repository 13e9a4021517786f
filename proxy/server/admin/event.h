// Event: a rendering of the state for the listeners of /events, whose texts all of them share.
#pragma once

#include <memory>
#include <string>

namespace carpool::proxy::admin {

struct Event {
  std::shared_ptr<const std::string> whole;
  std::shared_ptr<const std::string> changes;  // null: the event is only for listeners that have received none yet
};

}  // namespace carpool::proxy::admin
