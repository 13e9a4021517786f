// ClientConnection: the protocol-independent interface through which a ClientList owns a client's connection.
#pragma once

#include <memory>
#include <utility>

#include "base/intrusive.h"
#include "exec/role.h"
#include "proxy/exchange/listen_point.h"

namespace carpool::proxy {

class Listener;

class ClientConnection : public ListHook<struct ClientTag> {
 public:
  virtual ~ClientConnection() = default;
  virtual Listener* listener() const = 0;             // nullptr after another object took the connection over
  virtual void drain() LOOP_ONLY = 0;                 // closes when idle; a first request has a short time
  virtual void start_graceful_close() LOOP_ONLY = 0;  // announced in the next response, or by GOAWAY
  virtual bool end_if_idle() LOOP_ONLY = 0;           // returns true if the client was idle and is closed
  virtual void end() LOOP_ONLY = 0;                   // closes now, even in the middle of a response

  // Sets the point of this client's requests, if it is not the listener's own.
  void keep(std::unique_ptr<const ListenPoint> point) { point_ = std::move(point); }
  // Returns nullptr unless the client is inside an intercepted CONNECT.
  const Interception* interception() const { return point_ == nullptr ? nullptr : point_->interception(); }

 protected:
  ClientConnection() = default;
  std::unique_ptr<const ListenPoint> take_point() { return std::move(point_); }

 private:
  std::unique_ptr<const ListenPoint> point_;
};

}  // namespace carpool::proxy
