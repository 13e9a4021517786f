// ClientContext::Impl: the part of a client context that TlsTransport uses. Included by this directory's .cc files
// only.
#pragma once

#include <memory>

#include "proxy/net/tls/client_context.h"
#include "proxy/net/tls/openssl.h"
#include "proxy/net/tls/session_store.h"

namespace carpool::proxy::tls {

struct ClientContext::Impl {
  ClientSettings settings;
  std::uint64_t fingerprint = 0;
  SslCtxPtr context;
  // Shared with the transports: a connection may outlive the configuration that created it.
  std::shared_ptr<SessionStore> store = std::make_shared<SessionStore>();
};

// OpenSSL's callback for a resumable session; finds the transport through the SSL's app data.
int keep_session(SSL* ssl, SSL_SESSION* session);

}  // namespace carpool::proxy::tls
