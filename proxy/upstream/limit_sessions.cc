#include "proxy/upstream/limit_sessions.h"

#include <cstdint>
#include <vector>

#include "pool/destination/snapshot.h"
#include "proxy/upstream/h2/connection.h"

namespace carpool::proxy {

namespace {
class Sessions final : public pool::ConnectionVisitor {
 public:
  explicit Sessions(LoopId home) : home_(home) {}
  void visit(const pool::ConnectionView& view) override {
    if (view.pooled == nullptr || view.home != home_ || view.pooled->protocol() != pool::Protocol::h2) return;
    found.push_back({view.index, view.generation});
  }
  struct One {
    std::uint32_t index, generation;
  };
  std::vector<One> found;

 private:
  const LoopId home_;
};
}  // namespace

void limit_sessions(const OriginRuntime& origin, LoopId home, Instant now) {
  if (!origin.protocols.h2) return;
  Sessions sessions(home);
  origin.destination->visit(sessions, now);
  for (const Sessions::One& one : sessions.found) {
    const pool::EventClaim claim = pool::claim_event(one.index, one.generation, home);
    if (claim.kind != pool::EventClaim::Kind::session) continue;
    static_cast<H2Connection&>(*claim.pooled).limit_streams(origin.pool.max_streams);
  }
}

}  // namespace carpool::proxy
