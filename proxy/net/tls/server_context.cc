#include "proxy/net/tls/server_context.h"

#include <openssl/x509v3.h>

#include <utility>

#include "proxy/net/tls/certificate.h"
#include "proxy/net/tls/issuer.h"
#include "proxy/net/tls/material.h"
#include "proxy/net/tls/openssl.h"
#include "proxy/net/tls/ticket.h"
#include "proxy/net/tls/ticket_keys.h"
#include "proxy/net/tls/verify.h"

namespace carpool::proxy::tls {

struct ServerContext::Impl {
  explicit Impl(TicketKeys::Now now) : ticket_keys(now) {}
  TicketKeys ticket_keys;
  SslCtxPtr context;
  std::string certificate;
  std::string alpn;  // in wire format, preferred first
  ServerSettings settings;
  std::uint64_t fingerprint = 0;
  WallTime begins, expires;
};

namespace {

constexpr unsigned char kSessionContext[] = "carpool";
// Suites of TLS 1.2: forward secrecy and authenticated encryption (RFC 9325 §4.2). TLS 1.3 has no others.
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr const char* kGroups = "X25519:P-256:P-384";
// Bytes of a client's certificates. OpenSSL reserves memory for as many as their first bytes announce.
constexpr long kMaxChain = 32'768;

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
  // Without a common protocol the handshake ends with no_application_protocol (RFC 7301 §3.2).
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

// Returns the settings that name files, as those of a client that presents `cert_file` and trusts `client_ca_file`.
ClientSettings files_of(const ServerSettings& settings) {
  ClientSettings files;
  files.cert_file = settings.cert_file;
  files.key_file = settings.key_file;
  files.ca_file = settings.client_ca_file;
  files.verify = !settings.client_ca_file.empty();
  return files;
}

Fault from_files(Fault fault) {
  if (fault.detail.starts_with("ca_file ")) fault.detail.insert(0, "client_");
  return fault;
}

// Adds the names of the authorities, by which clients with several certificates select one.
void name_authorities(SSL_CTX* context) {
  STACK_OF(X509_OBJECT)* all = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));
  for (int i = 0; i < sk_X509_OBJECT_num(all); ++i) {
    X509* const authority = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i));
    if (authority != nullptr) SSL_CTX_add_client_CA(context, authority);
  }
}

Status use_files(ServerContext::Impl& impl, const ServerSettings& settings, const Material& material) {
  const ClientSettings files = files_of(settings);
  SSL_CTX* const context = impl.context.get();
  if (Status used = use_material(context, files, material); !used) return from_files(used.take_fault());
  impl.fingerprint = fingerprint_of(files, material);
  if (!files.verify) return Done{};
  name_authorities(context);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, check_certificate);
  return Done{};
}

// The chain is known: without this mode OpenSSL searches for one in each handshake.
bool use_certified(SSL_CTX* context, const Certified& own) {
  SSL_CTX_set_mode(context, SSL_MODE_NO_AUTO_CHAIN);
  return SSL_CTX_use_certificate(context, own.certificate.get()) == 1 &&
         SSL_CTX_use_PrivateKey(context, own.key.get()) == 1;
}

Status use_self_signed(ServerContext::Impl& impl, const ServerSettings& settings) {
  const Certified own = make_self_signed(settings.names, settings.valid_from, settings.valid_until);
  if (!own.certificate || !use_certified(impl.context.get(), own)) return cannot("a self-signed certificate");
  impl.certificate = pem_of(own.certificate.get());
  return Done{};
}

// Adds the issuer's chain without a root, which clients have.
bool use_chain_of(SSL_CTX* context, const Issuer& issuer) {
  for (const CertPtr& next : issuer.chain) {
    if (X509_self_signed(next.get(), 0) == 1) continue;
    if (SSL_CTX_add1_chain_cert(context, next.get()) != 1) return false;
  }
  return true;
}

Status use_issued(ServerContext::Impl& impl, const ServerSettings& settings, const Issuer& issuer) {
  const Result<Certified> own = issue(issuer, settings.names.front(), settings.valid_until);
  if (!own) return own.fault();
  if (!use_certified(impl.context.get(), *own) || !use_chain_of(impl.context.get(), issuer)) {
    return cannot("a certificate for " + settings.names.front());
  }
  impl.begins = begin_of(own->certificate.get());
  impl.expires = end_of(own->certificate.get());
  return Done{};
}

}  // namespace

ServerContext::ServerContext(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ServerContext::~ServerContext() = default;
const std::string& ServerContext::certificate_pem() const {
  return impl_->certificate;
}

bool ServerContext::names(const std::string& host) const {
  X509* const own = SSL_CTX_get0_certificate(impl_->context.get());
  return own != nullptr &&
         X509_check_host(own, host.data(), host.size(), X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, nullptr) == 1;
}

std::uint64_t ServerContext::fingerprint() const {
  return impl_->fingerprint;
}
WallTime ServerContext::expires() const {
  return impl_->expires;
}

bool ServerContext::valid_at(WallTime time) const {
  return impl_->begins <= time && time < impl_->expires;
}

namespace {

// Prefers AES-128 with SHA-256: SHA-384 would cost a tenth of a handshake, which hashes many small inputs. A client
// that prefers ChaCha20, because its processor has no AES, gets it. One ticket resumes every connection of an
// application.
bool prefer_cheap_handshakes(SSL_CTX* context) {
  SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  constexpr const char* kSuites = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384";
  return SSL_CTX_set_ciphersuites(context, kSuites) == 1 && SSL_CTX_set_num_tickets(context, 1) == 1;
}

// The source of the certificate: an issuer, files, or none (self-signed).
struct Source {
  const Issuer* issuer = nullptr;
  const Material* files = nullptr;
};

bool set_tickets(ServerContext::Impl& impl) {
  SSL_CTX_set_session_ticket_cb(impl.context.get(), mark_ticket, check_ticket, nullptr);
  return impl.ticket_keys.install(impl.context.get());
}

Status use_source(ServerContext::Impl& impl, const ServerSettings& settings, const Source& source) {
  if (source.issuer != nullptr) return use_issued(impl, settings, *source.issuer);
  if (!settings.cert_file.empty()) return use_files(impl, settings, *source.files);
  return use_self_signed(impl, settings);
}

Result<std::unique_ptr<ServerContext>> make_of(const ServerSettings& settings, const Source& source,
                                               TicketKeys::Now now = Clock::now) {
  ERR_clear_error();
  auto impl = std::make_unique<ServerContext::Impl>(now);
  impl->context.reset(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* context = impl->context.get();
  if (context == nullptr) return cannot("a TLS server");
  apply_tls_defaults(context);
  // Tickets resume sessions; a cache would hold one for each client.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_max_cert_list(context, kMaxChain);
  if (Status used = use_source(*impl, settings, source); !used) return used.take_fault();
  if (SSL_CTX_set_cipher_list(context, kCiphers) != 1 || SSL_CTX_set1_groups_list(context, kGroups) != 1 ||
      SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
      SSL_CTX_set_max_proto_version(context, version_number(settings.max_version)) != 1 ||
      SSL_CTX_set_session_id_context(context, kSessionContext, sizeof kSessionContext) != 1 ||
      !prefer_cheap_handshakes(context) || !set_tickets(*impl)) {
    return cannot("a TLS server");
  }
  impl->alpn = alpn_wire(settings.alpn);
  if (!impl->alpn.empty()) SSL_CTX_set_alpn_select_cb(context, choose_alpn, &impl->alpn);
  impl->settings = settings;
  return std::make_unique<ServerContext>(std::move(impl));
}

Result<Material> material_of(const ServerSettings& settings) {
  Result<Material> material = read_material(files_of(settings));
  if (!material) return from_files(material.take_fault());
  return material;
}

}  // namespace

Result<std::unique_ptr<ServerContext>> ServerContext::make(const ServerSettings& settings, Instant (*now)()) {
  const Result<Material> material = material_of(settings);
  if (!material) return material.fault();
  return make_of(settings, {nullptr, &*material}, now);
}

Result<std::unique_ptr<ServerContext>> ServerContext::renew(const ServerContext* before,
                                                            const ServerSettings& settings) {
  const Result<Material> material = material_of(settings);
  if (!material) return material.fault();
  const bool same = before != nullptr && before->impl_->settings == settings &&
                    before->fingerprint() == fingerprint_of(files_of(settings), *material);
  if (same) return std::unique_ptr<ServerContext>();
  return make_of(settings, {nullptr, &*material});
}

Result<std::unique_ptr<ServerContext>> ServerContext::issued(const ServerSettings& settings, const Issuer& issuer) {
  return make_of(settings, {&issuer, nullptr});
}

std::unique_ptr<TlsTransport> ServerContext::accept(Fd&& socket) {
  return TlsTransport::server(impl_->context.get(), std::move(socket));
}

}  // namespace carpool::proxy::tls
