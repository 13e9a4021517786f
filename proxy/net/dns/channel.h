// Channel: looks names up by c-ares, with the servers and options that resolv.conf has at that moment. The door to
// c-ares: its answers become values.
//
// Names are asked over UDP on one channel of c-ares. Those whose answer is truncated are asked again over TCP, each on
// a channel of its own: a TCP connection that fails is the matter of that name alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "exec/loop.h"
#include "proxy/net/dns/lookup_result.h"

namespace carpool::proxy::dns {

struct Settings;

class Lookup {
 public:
  virtual void on_answer(LookupResult answer) LOOP_ONLY = 0;

 protected:
  ~Lookup() = default;
};

class Channel {
 public:
  Channel(exec::Loop& loop, const Settings& settings);  // which outlive it
  ~Channel();                                           // lookups in flight are never answered
  // Answers once, perhaps from inside. `lookup` lives until then. One at a time for each name.
  void look_up(const std::string& name, Lookup& lookup) LOOP_ONLY;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace carpool::proxy::dns
