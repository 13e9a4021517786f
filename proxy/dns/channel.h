// Channel: c-ares on a loop. The door to c-ares: its sockets become watchers, its timeouts one timer, its answers
// values.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "exec/loop.h"
#include "proxy/net/address.h"

namespace carpool::proxy::dns {

struct Settings;

struct Answer {
  enum class Kind {
    found,
    absent,     // an authority says that there is none
    failed,     // nobody could say
    timed_out,  // nobody said anything
  } kind = Kind::failed;
  std::vector<net::Address> addresses;
  Duration ttl{};          // of the shortest-lived part
  std::string_view words;  // c-ares' own, static
};

class Lookup {
 public:
  virtual void on_answer(Answer answer) LOOP_ONLY = 0;

 protected:
  ~Lookup() = default;
};

class Channel {
 public:
  Channel(exec::Loop& loop, const Settings& settings);
  ~Channel();  // lookups in flight are never answered
  // Answers once, perhaps from inside. `lookup` lives until then.
  void look_up(const std::string& name, Lookup& lookup) LOOP_ONLY;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace carpool::proxy::dns
