#include "proxy/net/tls/server_context.h"

#include <utility>

#include "proxy/net/tls/certificate.h"
#include "proxy/net/tls/openssl.h"

namespace carpool::proxy::tls {

struct ServerContext::Impl {
  SslCtxPtr context;
  std::string certificate, key;
  std::string alpn;  // in wire format, preferred first
};

namespace {

constexpr unsigned char kSessionContext[] = "carpool";

Fault cannot(const std::string& what) {
  return {FaultKind::tls_protocol, Side::self, what + ": " + std::string(take_reason())};
}

int choose_alpn(SSL*, const unsigned char** out, unsigned char* length, const unsigned char* offered, unsigned size,
                void* argument) {
  const auto& ours = *static_cast<const std::string*>(argument);
  unsigned char* chosen = nullptr;
  const int found = SSL_select_next_proto(&chosen, length, reinterpret_cast<const unsigned char*>(ours.data()),
                                          static_cast<unsigned>(ours.size()), offered, size);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

bool demand_client_certificate(SSL_CTX* context, const std::string& authority) {
  if (authority.empty()) return true;
  const CertPtr trusted = certificate_of(authority);
  if (!trusted || X509_STORE_add_cert(SSL_CTX_get_cert_store(context), trusted.get()) != 1) return false;
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return true;
}

bool use_files(SSL_CTX* context, const ServerSettings& settings) {
  return SSL_CTX_use_certificate_chain_file(context, settings.cert_file.c_str()) == 1 &&
         SSL_CTX_use_PrivateKey_file(context, settings.key_file.c_str(), SSL_FILETYPE_PEM) == 1 &&
         SSL_CTX_check_private_key(context) == 1;
}

bool use_self_signed(ServerContext::Impl& impl, const ServerSettings& settings) {
  const SelfSigned own = make_self_signed(settings.names, settings.valid_from, settings.valid_until);
  if (!own.certificate) return false;
  impl.certificate = pem_of(own.certificate.get());
  impl.key = pem_of(own.key.get());
  return SSL_CTX_use_certificate(impl.context.get(), own.certificate.get()) == 1 &&
         SSL_CTX_use_PrivateKey(impl.context.get(), own.key.get()) == 1;
}

}  // namespace

ServerContext::ServerContext(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ServerContext::~ServerContext() = default;
const std::string& ServerContext::certificate_pem() const {
  return impl_->certificate;
}
const std::string& ServerContext::key_pem() const {
  return impl_->key;
}

Result<std::unique_ptr<ServerContext>> ServerContext::make(const ServerSettings& settings) {
  ERR_clear_error();
  auto impl = std::make_unique<Impl>();
  impl->context.reset(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* context = impl->context.get();
  if (context == nullptr) return cannot("a TLS server");
  apply_tls_defaults(context);
  if (!settings.cert_file.empty() && !use_files(context, settings)) {
    return cannot("the certificate " + settings.cert_file + " with the key " + settings.key_file);
  }
  if (settings.cert_file.empty() && !use_self_signed(*impl, settings)) return cannot("a self-signed certificate");
  if (SSL_CTX_set_max_proto_version(context, version_number(settings.max_version)) != 1 ||
      SSL_CTX_set_session_id_context(context, kSessionContext, sizeof kSessionContext) != 1 ||
      !demand_client_certificate(context, settings.client_ca)) {
    return cannot("a TLS server");
  }
  impl->alpn = alpn_wire(settings.alpn);
  if (!impl->alpn.empty()) SSL_CTX_set_alpn_select_cb(context, choose_alpn, &impl->alpn);
  return std::make_unique<ServerContext>(std::move(impl));
}

std::unique_ptr<TlsTransport> ServerContext::accept(int fd) {
  return TlsTransport::server(impl_->context.get(), fd);
}

}  // namespace carpool::proxy::tls
