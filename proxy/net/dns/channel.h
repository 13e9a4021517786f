// Channel: resolves names with c-ares, using the current servers and options of resolv.conf. Wraps c-ares: its
// responses become values.
//
// Names are queried over UDP on one c-ares channel. If the response is truncated, the name is queried again over TCP on
// a channel of its own, so that a failing TCP connection affects only that name.
//
// c-ares returns the addresses of both families together. A name server that answers for one family and not for the
// other (a dropped datagram, a server that ignores AAAA) would hold back the addresses that are known until the last
// timeout. They are delivered as a part after the Resolution Delay of RFC 8305 §3, and so is a truncated response whose
// rest does not arrive over TCP.
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
  virtual void on_result(LookupResult result) LOOP_ONLY = 0;
  // Delivers addresses while the rest of the lookup is late; on_result() follows.
  virtual void on_part(LookupResult part) LOOP_ONLY = 0;

 protected:
  ~Lookup() = default;
};

class Channel {
 public:
  Channel(exec::Loop& loop, const Settings& settings);  // both must outlive the channel
  ~Channel();                                           // pending lookups get no result
  // Calls on_result() once, perhaps from inside; `lookup` must live until then. At most one lookup per name at a
  // time.
  void look_up(const std::string& name, Lookup& lookup) LOOP_ONLY;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace carpool::proxy::dns
