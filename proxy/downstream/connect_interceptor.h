// ConnectInterceptor: decides for one loop which CONNECTs are intercepted, and tracks their outcome. A CONNECT that
// cannot be intercepted becomes a tunnel, as requested.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "exec/role.h"
#include "metrics/events.h"
#include "proxy/downstream/listener_identity.h"
#include "proxy/exchange/listen_point.h"
#include "proxy/http/message.h"

namespace carpool::proxy {

namespace tls {
struct ClientHello;
}
class ClientStream;
class Intercepts;
struct ExchangeContext;

// InterceptedConnect: a CONNECT that is intercepted, until its client's TLS is established.
struct InterceptedConnect {
  std::unique_ptr<ListenPoint> point;  // point of the requests inside
  ListenerIdentity identity;
  // The number of the origin's label, because the origin itself may be replaced or reclaimed before the client
  // continues.
  metrics::OriginSlot slot = metrics::kOtherOrigin;
  std::string head;  // the request again, for a tunnel, if the client's bytes are not usable TLS
  std::string user;  // user of the request's credentials; empty if none were required
};

class ConnectInterceptor {
 public:
  // `intercepts`: nullptr if no origin is intercepted.
  ConnectInterceptor(const ExchangeContext& context, Intercepts* intercepts)
      : context_(context), intercepts_(intercepts) {}

  // Decision: without `connect` the request is handled like any other.
  struct Decision {
    std::unique_ptr<InterceptedConnect> connect;
    std::optional<metrics::Intercept> tunnel;  // why a CONNECT to an intercepted origin stays a tunnel
  };
  // `obstacle`: why this client's CONNECT cannot be intercepted; nothing if its socket can be taken over.
  Decision accept(const ClientStream& client, const http::RequestHead& request,
                  std::optional<metrics::Intercept> obstacle) LOOP_ONLY;
  void count(const InterceptedConnect& connect, metrics::Intercept what) LOOP_ONLY;

  // ---- acceptance of the certificate by the client ----
  // Must be called when the client's first message has arrived. Returns true if such a client gets a tunnel because it
  // refused the certificate before.
  bool distrusts(InterceptedConnect& connect, const tls::ClientHello& hello) LOOP_ONLY;
  // Reports that the handshake failed with this alert about the certificate; 0: the client closed without an alert.
  void on_refusal(const InterceptedConnect& connect, std::uint8_t alert) LOOP_ONLY;
  // Reports that the client has sent its first byte inside.
  void on_use(const Interception& inside) LOOP_ONLY;
  // Reports that the client has closed the connection without sending a byte. Some clients verify the certificate only
  // after the handshake.
  void on_unused(const Interception& inside) LOOP_ONLY;

  // Returns false if a reload ended this interception or replaced its authority.
  bool in_force(const Interception& inside) const LOOP_ONLY;

 private:
  bool note_refusal(const Interception& inside, metrics::CertificateAlert alert) LOOP_ONLY;
  void warn(const Interception& inside, metrics::CertificateAlert alert) const LOOP_ONLY;

  const ExchangeContext& context_;
  Intercepts* const intercepts_;
};

}  // namespace carpool::proxy
