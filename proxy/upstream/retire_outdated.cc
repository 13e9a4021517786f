#include "proxy/upstream/retire_outdated.h"

#include <cstdint>
#include <vector>

#include "pool/destination/snapshot.h"
#include "proxy/upstream/connection.h"

namespace carpool::proxy {

namespace {
class Outdated final : public pool::ConnectionVisitor {
 public:
  Outdated(pool::LoopId home, Instant now) : home_(home), now_(now) {}
  void visit(const pool::ConnectionView& view) override {
    if (view.pooled == nullptr || view.home != home_) return;
    const auto& connection = static_cast<const Connection&>(*view.pooled);
    const bool session = connection.protocol() == pool::Protocol::h2;
    if (!session && view.state != pool::ConnectionStatus::idle) return;
    const Connection::AddressVerdict judged = connection.judge(now_);
    more |= judged.later;
    if (judged.cause) found.push_back({view.index, view.generation, *judged.cause, session});
  }
  struct One {
    std::uint32_t index, generation;
    pool::CloseCause cause;
    bool session;
  };
  std::vector<One> found;
  bool more = false;

 private:
  const pool::LoopId home_;
  const Instant now_;
};
}  // namespace

bool retire_outdated(pool::Destination& destination, pool::LoopId home, Instant now) {
  Outdated outdated(home, now);
  destination.visit(outdated, now);
  for (const Outdated::One& one : outdated.found) {
    if (one.session) {
      destination.retire(one.index, one.generation, one.cause, now);
      continue;
    }
    const pool::EventClaim claim = pool::claim_event(one.index, one.generation, home);
    if (claim.kind == pool::EventClaim::Kind::inspecting) pool::end_inspection(one.index, false, one.cause, now);
  }
  return outdated.more;
}

}  // namespace carpool::proxy
