#include "proxy/upstream/retire_outdated.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "pool/destination/snapshot.h"
#include "proxy/net/address_set.h"
#include "proxy/upstream/connection.h"

namespace carpool::proxy {

namespace {
// A session that already drains would only take the turn of another one (AddressSet: one every retire_every).
bool may_end(const pool::ConnectionView& view, LoopId home) {
  if (view.pooled == nullptr || view.home != home || view.state == pool::ConnectionStatus::draining) return false;
  return view.pooled->protocol() == pool::Protocol::h2 || view.state == pool::ConnectionStatus::idle;
}

class Outdated final : public pool::ConnectionVisitor {
 public:
  Outdated(LoopId home, Instant now) : home_(home), now_(now) {}
  void visit(const pool::ConnectionView& view) override {
    if (!may_end(view, home_)) return;
    const auto& connection = static_cast<const Connection&>(*view.pooled);
    const bool session = connection.protocol() == pool::Protocol::h2;
    const Connection::Retirement due = connection.retirement(now_);
    more |= due.later;
    if (due.cause) found.push_back({view.index, view.generation, *due.cause, session});
  }
  struct One {
    std::uint32_t index, generation;
    pool::CloseCause cause;
    bool session;
  };
  std::vector<One> found;
  bool more = false;

 private:
  const LoopId home_;
  const Instant now_;
};
// LeastUseful: finds the least needed connection among those to addresses that have too many: an idle one, otherwise
// the session with the fewest streams.
class LeastUseful final : public pool::ConnectionVisitor {
 public:
  explicit LeastUseful(LoopId home) : home_(home) {}
  void visit(const pool::ConnectionView& view) override {
    if (!may_end(view, home_)) return;
    const auto& connection = static_cast<const Connection&>(*view.pooled);
    const bool session = connection.protocol() == pool::Protocol::h2;
    if ((address && view.users >= users_) || !connection.may_close_for_rebalance()) return;
    address = connection.address();
    users_ = view.users;
    one = {view.index, view.generation, pool::CloseCause::rebalanced, session};
  }
  std::optional<net::Address> address;
  Outdated::One one{};

 private:
  const LoopId home_;
  std::uint32_t users_ = 0;
};

void end(pool::Destination& destination, const Outdated::One& one, LoopId home, Instant now) LOOP_ONLY {
  if (one.session) return destination.retire(one.index, one.generation, one.cause, now);
  const pool::EventClaim claim = pool::claim_event(one.index, one.generation, home);
  if (claim.kind == pool::EventClaim::Kind::inspecting) pool::close_inspected(one.index, one.cause, now);
}
}  // namespace

void rebalance(pool::Destination& destination, net::AddressSet& addresses, LoopId home, Instant now) {
  LeastUseful found(home);
  destination.visit(found, now);
  if (found.address && addresses.closes_for_rebalance(*found.address, now)) end(destination, found.one, home, now);
}

bool retire_outdated(pool::Destination& destination, LoopId home, Instant now) {
  Outdated outdated(home, now);
  destination.visit(outdated, now);
  for (const Outdated::One& one : outdated.found) end(destination, one, home, now);
  return outdated.more;
}

}  // namespace carpool::proxy
