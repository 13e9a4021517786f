// ClientConnection: a client's connection as its worker owns it, whatever it speaks.
#pragma once

#include "base/intrusive.h"
#include "exec/role.h"

namespace carpool::proxy {

class Listener;

class ClientConnection : public ListHook<struct ClientTag> {
 public:
  virtual ~ClientConnection() = default;
  virtual Listener* listener() const = 0;             // nullptr: another one took its place there
  virtual void drain() LOOP_ONLY = 0;                 // end when idle; what runs is answered, and nothing new taken
  virtual void start_graceful_close() LOOP_ONLY = 0;  // with the next answer, or by a word of its protocol
  virtual bool end_if_idle() LOOP_ONLY = 0;           // true: it was, and ends
  virtual void end() LOOP_ONLY = 0;                   // now, whatever it does

 protected:
  ClientConnection() = default;
};

}  // namespace carpool::proxy
