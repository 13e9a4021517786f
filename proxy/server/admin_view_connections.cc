// ServerAdminView, the connections of a pool and the borrowers that hold them.
#include <algorithm>
#include <map>

#include "pool/directory/directory.h"
#include "proxy/exchange/leak_log.h"
#include "proxy/server/admin/handlers/leaks.h"
#include "proxy/server/admin_view.h"
#include "proxy/server/worker.h"
#include "proxy/upstream/connection.h"
#include "proxy/upstream/origin/origin_registry.h"

namespace carpool::proxy {

namespace {
class Collector final : public pool::ConnectionVisitor {
 public:
  void visit(const pool::ConnectionView& view) override {
    admin::ConnectionInfo info;
    info.state = view.state;
    info.opened = view.opened;
    info.age = view.age;
    info.idle = view.idle;
    info.uses = view.uses;
    info.streams = view.users;
    info.loop = view.home;
    info.protocol = "h1";
    if (view.pooled != nullptr) describe(static_cast<const Connection&>(*view.pooled), info);
    all.push_back(std::move(info));
  }
  std::vector<admin::ConnectionInfo> all;

 private:
  // Reads only data that never changes in a connection, because another loop may be using it.
  static void describe(const Connection& connection, admin::ConnectionInfo& info) {
    info.id = connection.id();
    info.local = connection.local();
    info.peer = connection.peer();
    info.protocol = connection.protocol() == pool::Protocol::h2 ? "h2" : "h1";
    info.tls_version = connection.security().version;
    info.cipher = connection.security().cipher;
  }
};

// Returns the borrowers of `origin` by connection id. Asks the loops, because only they have this data.
std::map<std::uint64_t, std::string> borrowers(const Workers& workers, const std::string& origin) {
  constexpr Duration kTimeout = std::chrono::milliseconds(250);
  using Held = std::vector<BorrowerInfo>;
  const auto ask = [origin](Worker& worker) {
    exec::assume_on_loop();
    Held held;
    worker.parts.exchanges.for_each([&](const Exchange& exchange) {
      exec::assume_on_loop();
      if (!exchange.holds_lease() || exchange.info().origin->destination->label() != origin) return;
      held.push_back(exchange.describe_borrower());
    });
    return held;
  };
  std::map<std::uint64_t, std::string> all;
  for (const Held& held : exec::query_loops<Held>(workers, kTimeout, ask)) {
    for (const BorrowerInfo& one : held) all.emplace(one.connection, admin::borrower_text(one));
  }
  return all;
}
}  // namespace

std::vector<admin::ConnectionInfo> ServerAdminView::connections(const std::string& origin) const {
  Collector collector;
  const auto held = parts_.origins.directory().hold();
  for (const pool::Destination* destination : parts_.origins.directory().all()) {
    if (destination->label() == origin) destination->visit(collector, Clock::now());
  }
  return std::move(collector.all);
}

void ServerAdminView::name_borrowers(const std::string& origin, std::vector<admin::ConnectionInfo>& connections) const {
  const auto lent = [](const admin::ConnectionInfo& one) {
    return one.state != pool::ConnectionStatus::idle && one.state != pool::ConnectionStatus::connecting;
  };
  if (std::none_of(connections.begin(), connections.end(), lent)) return;
  const std::map<std::uint64_t, std::string> held = borrowers(parts_.workers, origin);
  for (admin::ConnectionInfo& one : connections) {
    if (const auto found = held.find(one.id); found != held.end()) one.borrower = found->second;
  }
}

}  // namespace carpool::proxy
