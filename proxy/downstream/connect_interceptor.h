// ConnectInterceptor: decides for one loop which CONNECT ends here, and what becomes of it. A CONNECT that cannot end
// here is the tunnel that it asked for.
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

// A CONNECT that ends here, until its client's TLS is established.
struct InterceptedConnect {
  std::unique_ptr<ListenPoint> point;  // of the requests inside
  ListenerIdentity identity;
  // The number of the origin's label. The origin itself may be replaced or reclaimed while the client is silent.
  metrics::OriginSlot slot = metrics::kOtherOrigin;
  std::string head;  // the request again, for the tunnel that it becomes if the client's bytes are no usable TLS
  std::string user;  // whose credentials the request carried; empty: none were asked for
};

class ConnectInterceptor {
 public:
  // `intercepts`: nullptr: no origin is intercepted.
  ConnectInterceptor(const ExchangeContext& context, Intercepts* intercepts)
      : context_(context), intercepts_(intercepts) {}

  // Without a connect, the request is to be handled like any other.
  struct Verdict {
    std::unique_ptr<InterceptedConnect> connect;
    std::optional<metrics::Intercept> tunnel;  // why a CONNECT to an intercepted origin stays a tunnel
  };
  // `obstacle`: why this client's CONNECT cannot end here; nothing: its socket can be taken over.
  Verdict accept(const ClientStream& client, const http::RequestHead& request,
                 std::optional<metrics::Intercept> obstacle) LOOP_ONLY;
  void count(const InterceptedConnect& connect, metrics::Intercept what) LOOP_ONLY;

  // ---- whether the client accepts the certificate ----
  // The client's first message has arrived. Returns true if such a client gets a tunnel because it refused before.
  bool distrusts(InterceptedConnect& connect, const tls::ClientHello& hello) LOOP_ONLY;
  // The handshake failed with this alert about the certificate; 0: the client left without one.
  void on_refusal(const InterceptedConnect& connect, std::uint8_t alert) LOOP_ONLY;
  // The client has sent its first byte inside.
  void on_use(const Interception& inside) LOOP_ONLY;
  // The client has ended the connection without one: some verify the certificate after the handshake.
  void on_unused(const Interception& inside) LOOP_ONLY;

  // Returns false if a reload ended this interception, or changed its authority.
  bool in_force(const Interception& inside) const LOOP_ONLY;

 private:
  bool note_refusal(const Interception& inside, metrics::CertificateAlert alert) LOOP_ONLY;
  void warn(const Interception& inside, metrics::CertificateAlert alert) const LOOP_ONLY;

  const ExchangeContext& context_;
  Intercepts* const intercepts_;
};

}  // namespace carpool::proxy
