// ConnectInterceptor: decides for one loop which CONNECT ends here, and what becomes of it. A CONNECT that cannot end
// here is the tunnel that it asked for.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "exec/role.h"
#include "metrics/events.h"
#include "proxy/downstream/listener_identity.h"
#include "proxy/exchange/listen_point.h"
#include "proxy/http/message.h"

namespace carpool::proxy {

class ClientStream;
class Intercepts;
struct ExchangeContext;

// A CONNECT that ends here, until its client's TLS is established.
struct InterceptedConnect {
  std::unique_ptr<ListenPoint> point;  // of the requests inside
  ListenerIdentity identity;
  // The number of the origin's label. The origin itself may be replaced or reclaimed while the client is silent.
  metrics::OriginSlot slot = metrics::kOtherOrigin;
  std::string head;    // the request again, for the tunnel that it becomes if the client's bytes are no usable TLS
  std::string client;  // for Intercepts
  std::string user;    // whose credentials the request carried; empty: none were asked for
};

class ConnectInterceptor {
 public:
  // `intercepts`: nullptr: no origin is intercepted.
  ConnectInterceptor(const ExchangeContext& context, Intercepts* intercepts)
      : context_(context), intercepts_(intercepts) {}

  // Returns nullptr if the request is to be handled like any other. `fd`: of the client. `more`: bytes that followed
  // the head already.
  std::unique_ptr<InterceptedConnect> accept(const ClientStream& client, int fd, const http::RequestHead& request,
                                             std::size_t more) LOOP_ONLY;
  void count(const InterceptedConnect& connect, metrics::Intercept what) LOOP_ONLY;
  // The client does not accept the certificate.
  void on_refusal(const InterceptedConnect& connect) LOOP_ONLY;

 private:
  void note_refusal(const InterceptedConnect& connect) LOOP_ONLY;

  const ExchangeContext& context_;
  Intercepts* const intercepts_;
};

}  // namespace carpool::proxy
