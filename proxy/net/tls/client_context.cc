#include "proxy/net/tls/client_context.h"

#include <string>
#include <utility>

#include "proxy/net/tls/client_context_impl.h"
#include "proxy/net/tls/material.h"

namespace carpool::proxy::tls {
namespace {

Status apply_versions(SSL_CTX* context, const ClientSettings& settings) {
  const int version = version_number(settings.min_version);
  if (version == 0) {
    return Fault(FaultKind::tls_protocol, Side::self,
                 "min_version " + settings.min_version + ": expected \"1.2\" or \"1.3\"");
  }
  SSL_CTX_set_min_proto_version(context, version);
  return Done{};
}

// Returns false if there is no memory.
bool apply_alpn(SSL_CTX* context, const ClientSettings& settings) {
  const std::string wire = alpn_wire(settings.alpn);
  if (wire.empty()) return true;
  return SSL_CTX_set_alpn_protos(context, reinterpret_cast<const unsigned char*>(wire.data()),
                                 static_cast<unsigned>(wire.size())) == 0;
}

Fault no_memory() {
  ERR_clear_error();
  return {FaultKind::budget, Side::self, "TLS: out of memory"};
}

}  // namespace

ClientContext::ClientContext(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ClientContext::~ClientContext() = default;
const ClientSettings& ClientContext::settings() const {
  return impl_->settings;
}
std::uint64_t ClientContext::fingerprint() const {
  return impl_->fingerprint;
}
std::vector<std::string> ClientContext::hand_out(const std::string& peer, std::size_t most) {
  std::vector<std::string> all;
  while (all.size() < most) {
    const SessionPtr session = impl_->store->take(peer);
    const int length = session == nullptr ? 0 : i2d_SSL_SESSION(session.get(), nullptr);
    if (length <= 0) return all;
    std::string bytes(static_cast<std::size_t>(length), '\0');
    auto* at = reinterpret_cast<unsigned char*>(bytes.data());
    i2d_SSL_SESSION(session.get(), &at);
    all.push_back(std::move(bytes));
    // it stays in the store: one copy is enough
    if (SSL_SESSION_get_protocol_version(session.get()) < TLS1_3_VERSION) return all;
  }
  return all;
}

bool ClientContext::remember(const std::string& peer, const std::string& session) {
  const auto* at = reinterpret_cast<const unsigned char*>(session.data());
  SessionPtr made(d2i_SSL_SESSION(nullptr, &at, static_cast<long>(session.size())));
  ERR_clear_error();
  if (made == nullptr) return false;
  impl_->store->put(peer, std::move(made));
  return true;
}

std::size_t ClientContext::sessions() const {
  return impl_->store->size();
}

namespace {
Result<std::unique_ptr<ClientContext>> make_of(const ClientSettings& settings, const Material& material) {
  ERR_clear_error();
  auto impl = std::make_unique<ClientContext::Impl>();
  impl->settings = settings;
  impl->fingerprint = fingerprint_of(settings, material);
  impl->context.reset(SSL_CTX_new(TLS_client_method()));
  SSL_CTX* context = impl->context.get();
  if (context == nullptr) return no_memory();  // it depends on nothing else
  apply_tls_defaults(context);
  if (Status used = use_material(context, settings, material); !used) return used.take_fault();
  if (Status applied = apply_versions(context, settings); !applied) return applied.take_fault();
  if (!apply_alpn(context, settings)) return no_memory();
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context, keep_session);
  return std::make_unique<ClientContext>(std::move(impl));
}

bool trusts_any(const ClientContext& context) {
  const STACK_OF(X509_OBJECT)* all = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context.impl().context.get()));
  return sk_X509_OBJECT_num(all) > 0;
}
}  // namespace

Result<std::unique_ptr<ClientContext>> ClientContext::make(const ClientSettings& settings) {
  const Result<Material> material = read_material(settings);
  if (!material) return material.fault();
  return make_of(settings, *material);
}

Result<std::unique_ptr<ClientContext>> ClientContext::renew(const ClientContext& before) {
  const Result<Material> material = read_material(before.settings());
  if (!material) return material.fault();
  if (fingerprint_of(before.settings(), *material) == before.fingerprint()) return std::unique_ptr<ClientContext>();
  Result<std::unique_ptr<ClientContext>> made = make_of(before.settings(), *material);
  if (made && trusts_any(before) && !trusts_any(**made)) {
    return Fault{FaultKind::tls_protocol, Side::self, "the system's certificate authorities: none is left"};
  }
  return made;
}

}  // namespace carpool::proxy::tls
