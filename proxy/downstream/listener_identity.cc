#include "proxy/downstream/listener_identity.h"

#include <utility>

#include "proxy/net/tls/server_context.h"

namespace carpool::proxy {

Result<ListenerIdentity> read_identity(const config::Listen& listen, const ListenerIdentity& before) {
  if (listen.cert_file.empty()) return ListenerIdentity();
  tls::ServerSettings settings;
  settings.cert_file = listen.cert_file;
  settings.key_file = listen.key_file;
  settings.client_ca_file = listen.client_ca_file;
  settings.alpn = {"h2", "http/1.1"};
  Result<std::unique_ptr<tls::ServerContext>> made = tls::ServerContext::renew(before.get(), settings);
  if (!made) {
    Fault fault = made.take_fault();
    fault.detail.insert(0, "the listener " + listen.address + ": ");
    return fault;
  }
  return *made == nullptr ? before : ListenerIdentity(std::move(*made));
}

}  // namespace carpool::proxy
