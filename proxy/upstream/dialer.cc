#include "proxy/upstream/dialer.h"

#include <utility>

#include "proxy/upstream/pending_dial.h"
#include "proxy/upstream/upstream_context.h"

namespace carpool::proxy {

Dialer::Dialer(const UpstreamContext& context, dns::Resolver& resolver) : context_(context), resolver_(resolver) {}

Dialer::~Dialer() {
  CARPOOL_ASSERT(attempts_.empty());
}

void Dialer::dial(pool::Destination& destination, OriginRuntime& origin, pool::Reservation reservation) {
  PendingDial& attempt = *std::make_unique<PendingDial>(*this, context_, resolver_, handshakes_, destination, origin,
                                                        std::move(reservation))
                              .release();
  attempts_.push_back(attempt);  // owned by attempts_ until finished()
  attempt.start();
}

void Dialer::cancel_dial(pool::Destination& destination, std::uint32_t index, std::uint32_t generation) {
  // Pools cancel their youngest dials first.
  for (PendingDial* attempt = attempts_.last(); attempt != nullptr; attempt = attempts_.previous(attempt)) {
    if (attempt->is(destination, index, generation)) return attempt->give_up();
  }
}

std::string_view Dialer::phase_of(const OriginRuntime& origin) const {
  for (const PendingDial& attempt : attempts_) {
    if (attempt.origin().destination == origin.destination) return attempt.phase();
  }
  return {};
}

void Dialer::stop_waiting() {
  for (PendingDial& attempt : attempts_) attempt.stop_waiting();
}

void Dialer::cancel_all() {
  while (!attempts_.empty()) attempts_.front().fail({FaultKind::draining, Side::self, "carpool is stopping"});
}

void Dialer::finished(PendingDial& attempt) {
  attempt.unlink();
  attempt.destroy();
}

}  // namespace carpool::proxy
