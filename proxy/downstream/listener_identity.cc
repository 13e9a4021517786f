#include "proxy/downstream/listener_identity.h"

#include <chrono>
#include <utility>

#include "proxy/net/tls/server_context.h"

namespace carpool::proxy {

namespace {

template <class Table>
Result<ListenerIdentity> identity_of(const Table& table, const std::string& whose, const ListenerIdentity& before) {
  if (table.cert_file.empty()) return ListenerIdentity();
  tls::ServerSettings settings;
  settings.cert_file = table.cert_file;
  settings.key_file = table.key_file;
  settings.client_ca_file = table.client_ca_file;
  settings.alpn = {"h2", "http/1.1"};
  Result<std::unique_ptr<tls::ServerContext>> made = tls::ServerContext::renew(before.get(), settings);
  if (!made) {
    Fault fault = made.take_fault();
    fault.detail.insert(0, whose + ": ");
    return fault;
  }
  return *made == nullptr ? before : ListenerIdentity(std::move(*made));
}

}  // namespace

Result<ListenerIdentity> read_identity(const config::Listen& listen, const ListenerIdentity& before) {
  return identity_of(listen, "the listener " + listen.address, before);
}

Result<ListenerIdentity> read_identity(const config::Admin& admin, const ListenerIdentity& before) {
  return admin.enabled ? identity_of(admin, "[admin]", before) : Result<ListenerIdentity>(ListenerIdentity());
}

bool is_in_time(const ListenerIdentity& issued, WallTime now) {
  return issued != nullptr && issued->valid_at(now);
}

}  // namespace carpool::proxy
