#include "proxy/upstream/dialer.h"

#include <utility>

#include "base/intrusive_tree.h"
#include "proxy/upstream/pending_dial.h"
#include "proxy/upstream/upstream_context.h"

namespace carpool::proxy {

struct Dialer::Index {
  Tree<PendingDial, AttemptSlotTag, PendingDial::BySlot> by_slot;
  Tree<PendingDial, AttemptOrderTag, PendingDial::ByAge> by_age;
};

Dialer::Dialer(const UpstreamContext& context, dns::Resolver& resolver)
    : context_(context), resolver_(resolver), index_(std::make_unique<Index>()) {}

Dialer::~Dialer() {
  CARPOOL_ASSERT(attempts_.empty());
}

void Dialer::dial(pool::Destination& destination, OriginRuntime& origin, pool::Reservation reservation) {
  PendingDial& attempt = *std::make_unique<PendingDial>(*this, context_, resolver_, handshakes_, destination, origin,
                                                        std::move(reservation))
                              .release();
  attempts_.push_back(attempt);  // owned by attempts_ until finished()
  index_->by_slot.insert(attempt);
  index_->by_age.insert(attempt);
  attempt.start();
}

void Dialer::cancel_dial(pool::Destination& destination, std::uint32_t index, std::uint32_t generation) {
  const DialSlot wanted(&destination, index, generation);
  PendingDial* const last =
      index_->by_slot.last_not([&](const PendingDial& one) { return PendingDial::BySlot::key(one) > wanted; });
  if (last != nullptr && PendingDial::BySlot::key(*last) == wanted) last->give_up();
}

std::string_view Dialer::phase_of(const OriginRuntime& origin) const {
  const auto& dials = index_->by_age;
  const auto beyond = [&](const PendingDial& one) { return PendingDial::ByAge::key(one).first >= origin.destination; };
  PendingDial* const before = dials.last_not(beyond);
  const PendingDial* const oldest = before != nullptr ? dials.next(*before) : dials.first();
  const bool dialing = oldest != nullptr && PendingDial::ByAge::key(*oldest).first == origin.destination;
  return dialing ? oldest->phase() : std::string_view();
}

void Dialer::stop_waiting() {
  for (PendingDial& attempt : attempts_) attempt.stop_waiting();
}

void Dialer::cancel_all() {
  while (!attempts_.empty()) attempts_.front().fail({FaultKind::draining, Side::self, "carpool is stopping"});
}

void Dialer::finished(PendingDial& attempt) {
  attempt.ListHook<AttemptTag>::unlink();
  index_->by_slot.erase(attempt);
  index_->by_age.erase(attempt);
  attempt.destroy();
}

}  // namespace carpool::proxy
