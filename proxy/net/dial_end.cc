// The end of a dial: its deadline, its Fault, its result.
#include <string>
#include <utility>

#include "proxy/net/dial_impl.h"

namespace carpool::proxy::net {
namespace {

// Formats a duration like the setting: "2s", "250ms".
std::string spelled(Duration duration) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + "s" : std::to_string(ms) + "ms";
}

}  // namespace

void Dial::Impl::on_deadline() {
  exec::assume_on_loop();
  handshake.deadline_passed = handshake.away();
  if (handshake.away()) return;
  const bool silent = phase == Phase::handshaking && plan.parent == nullptr && !retry.armed();
  if (phase == Phase::asking || silent) record_failure(made.peer);
  if (phase == Phase::connecting) {
    for (const Address& address : race->waiting_for()) record_failure(address);
  }
  if (phase == Phase::connecting && asked_dns) resolver.mark_stale(place.host);
  finish(phase == Phase::resolving && part_failed ? std::move(*part_failed) : deadline_fault());
}

Fault Dial::Impl::deadline_fault() const {
  const std::string after = " timed out after " + spelled(allowed);
  const std::string name = plan.origin->host + ":" + std::to_string(plan.origin->port);
  switch (phase) {
    case Phase::resolving:
      return {FaultKind::dns_timeout, Side::upstream, "resolving " + place.host + after};
    case Phase::connecting:
      if (const std::optional<Fault> own = race->own_address_fault()) return *own;
      return {FaultKind::connect_timeout, Side::upstream, race->pending() + after};
    case Phase::asking:
      return {FaultKind::connect_timeout, Side::upstream, "CONNECT " + name + " through " + place.label() + after};
    default:
      break;
  }
  const std::string handshaking = "TLS handshake with " + name + " (" + made.peer.text() + ")" + after;
  if (!retry.armed()) return {FaultKind::connect_timeout, Side::upstream, handshaking};
  return {FaultKind::overloaded, Side::self, handshaking + ": too many blocking tasks (threads.max_tasks)"};
}

void Dial::Impl::unwatch() {
  const int fd = stream ? stream->fd() : socket.get();
  if (key.generation != 0) loop.unwatch(fd, std::exchange(key, {}));
}

// The owner may destroy the dial inside the callback, so no member is accessed afterwards.
void Dial::Impl::finish(Result<Dialed> result) {
  CARPOOL_ASSERT(phase != Phase::done);
  phase = Phase::done;
  stop_counting(counted && result && result->peer == *counted);
  deadline.disarm();
  retry.disarm();
  ListHook<exec::DeferredTag>::unlink();
  ListHook<dns::QuestionTag>::unlink();
  unwatch();
  stream.reset();
  socket.reset();
  race.reset();
  owner.on_dialed(std::move(result));
}

}  // namespace carpool::proxy::net
