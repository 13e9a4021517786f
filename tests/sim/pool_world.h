// FakeEnvironment: the pool's environment without sockets, threads or time: loops are mailboxes, connections are
// objects, dials and events happen when the test says so. A seed drives it in the simulation, the test itself in unit
// tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pool/core/audit_report.h"
#include "pool/destination/destination.h"
#include "pool/destination/destination_impl.h"
#include "pool/destination/outstanding.h"
#include "pool/destination/rejection.h"
#include "pool/destination/snapshot.h"
#include "pool/queue/delivery.h"
#include "tests/sim/addresses.h"

namespace carpool::test {

using pool::Destination;

// A connection. Violations by the pool are recorded in FakeEnvironment::wrong.
struct FakeConnection final : pool::PooledConnection {
  explicit FakeConnection(std::uint64_t number) : id(number) {}
  bool clean_for_reuse() override { return !peer_closed && !hangup_noted && !dirty; }
  pool::Protocol protocol() const override { return speaks; }
  std::uint32_t streams() const override { return most; }
  pool::Endpoint* endpoint() const override { return leads_to; }
  bool session() const { return speaks == pool::Protocol::h2; }

  const std::uint64_t id;
  bool peer_closed = false;   // the origin closed it
  bool hangup_noted = false;  // an event reported the hangup
  bool dirty = false;         // unread data is pending
  pool::Protocol speaks = pool::Protocol::h1;
  std::uint32_t most = 1;  // maximum users; a session reports changes
  bool retired = false;    // its loop reported it
  Destination* destination = nullptr;
  pool::Endpoint* leads_to = nullptr;
  std::uint32_t users = 0;
  std::uint32_t served = 0;                 // borrowers that used it and released it
  std::uint32_t index = 0, generation = 0;  // as watched
  std::optional<LoopId> watched_on;
};

// The order of their memory addresses differs from run to run, and a seed must lead to one history.
struct ByAge {
  bool operator()(const FakeConnection* one, const FakeConnection* other) const { return one->id < other->id; }
};

struct Event {
  std::uint32_t index, generation;
  bool hangup;
};

class FakeEnvironment : public pool::Environment {
 public:
  explicit FakeEnvironment(unsigned loops) : mail(loops), events(loops) {}

  struct Dial {
    Destination* destination;
    std::unique_ptr<pool::Reservation> reservation;
    LoopId loop;
  };

  void dial(Destination& destination, pool::Reservation reservation) override {
    opened.push_back(reservation.cause());
    dials.push_back({&destination, std::make_unique<pool::Reservation>(std::move(reservation)), here_});
    if (live.size() + dials.size() > most) most = live.size() + dials.size();
  }
  void deliver(LoopId to, pool::Delivery& delivery) override { mail[to].push_back(&delivery); }
  void wake_at(Destination& destination, Instant when) override { wakes.push_back({when, &destination}); }
  void pause_ended(Destination&) override { ++pauses_ended; }
  void size_changed(Destination&, const pool::SizeChange& change) override { resized.push_back(change); }
  void detach(pool::PooledConnection& pooled, LoopId from) override {
    auto& wire = static_cast<FakeConnection&>(pooled);
    if (wire.watched_on != from) wrong = "detached from a loop that does not watch it";
    if (wire.session()) wrong = "a session was moved";
    wire.watched_on.reset();
    ++moves;
  }
  bool attach(pool::PooledConnection& pooled, std::uint32_t index, std::uint32_t generation) override {
    auto& wire = static_cast<FakeConnection&>(pooled);
    if (wire.watched_on) wrong = "attached while it is watched elsewhere";
    wire.hangup_noted = false;
    if (attach_fails) return attach_fails = false;
    watch(wire, index, generation);
    return true;
  }
  void dispose(pool::PooledConnection* pooled, pool::CloseCause cause) override {
    const std::unique_ptr<FakeConnection> dies(static_cast<FakeConnection*>(pooled));
    if (live.erase(dies.get()) != 1) wrong = "disposed twice";
    if (dies->users != 0) wrong = "disposed while in use";
    if (dies->leads_to != nullptr) addresses.left(dies->leads_to);
    if (dies->session() && (!delivering_ || dies->watched_on != here_)) {
      wrong = "a session was disposed of from inside, or away from home";
    }
    if (cause == pool::CloseCause::peer_closed && !dies->peer_closed && !dies->dirty) {
      wrong = "a healthy connection was closed as if its peer had";
    }
    closed.push_back(cause);
  }
  LoopId here() const override { return here_; }

  // ---- actions of the test ----
  void on(LoopId loop) { here_ = loop; }
  void watch(FakeConnection& wire, std::uint32_t index, std::uint32_t generation) {
    wire.index = index;
    wire.generation = generation;
    wire.watched_on = here_;
    if (wire.peer_closed) events[here_].push_back({index, generation, true});  // a pending condition is reported
  }
  // The n-th oldest dial succeeds.
  void dialed(std::size_t n = 0) {
    Dial dial = take(n);
    auto wire = made_by(dial);
    dial.destination->dialed(std::move(*dial.reservation), std::move(wire), now);
  }
  virtual std::unique_ptr<FakeConnection> made_by(const Dial& dial) {
    here_ = dial.loop;
    auto wire = std::make_unique<FakeConnection>(++made);
    FakeConnection& made_wire = *wire;
    wire->dirty = std::exchange(next_is_dirty, false);
    if (dial.reservation->kind() != pool::ProtocolMask::h1_only && next_streams != 0) {
      wire->speaks = pool::Protocol::h2;
      wire->most = next_streams;
    }
    made_wire.destination = dial.destination;
    if (addresses.serve(*dial.destination)) made_wire.leads_to = addresses.reach();
    live.insert(&made_wire);
    watch(made_wire, dial.reservation->index(), dial.reservation->generation());
    return wire;
  }
  void dial_failed(std::size_t n = 0, const Fault& fault = {FaultKind::connect_refused, Side::upstream, "refused"}) {
    Dial dial = take(n);
    here_ = dial.loop;
    dial.destination->dial_failed(std::move(*dial.reservation), fault, now);
  }
  // As in the proxy's dialer: a dial that has reached the origin continues.
  void cancel_dial(Destination& destination, std::uint32_t index, std::uint32_t generation) override {
    for (std::size_t n = 0; n < dials.size(); ++n) {
      auto at = dials.begin();
      std::advance(at, static_cast<std::ptrdiff_t>(n));
      if (at->destination != &destination || at->reservation->index() != index) continue;
      if (at->reservation->generation() != generation || at->loop != here()) wrong = "another dial was recalled";
      const Destination::Snapshot seen = destination.snapshot(now);
      if (one_kind &&
          seen.waiting - seen.waiting_for_place >= dials_of(destination)) {  // a dial serves none without a place
        wrong = "a dial was recalled that somebody needs";
      }
      ++recalled;
      if (dials_are_past_tcp) return;
      Dial dial = take(n);
      ++given_up;
      return destination.given_up(std::move(*dial.reservation), now);
    }
    wrong = "a dial was recalled that is not there";
  }
  // Delivers one message of `loop`. Returns false if there is none.
  bool deliver_one(LoopId loop) {
    if (mail[loop].empty()) return false;
    pool::Delivery* delivery = mail[loop].front();
    mail[loop].pop_front();
    here_ = loop;
    delivering_ = true;
    delivery->arrive(now);
    delivering_ = false;
    return true;
  }
  bool deliver_all() {
    bool any = false;
    int rounds = 0;
    for (bool more = true; more;) {
      if (++rounds == 100000) return wrong = "the mail never ends", false;
      more = false;
      for (std::size_t loop = 0; loop < mail.size(); ++loop) more |= deliver_one(static_cast<LoopId>(loop));
      any |= more;
    }
    return any;
  }
  void close_by_peer(FakeConnection& wire) {
    wire.peer_closed = true;
    if (wire.watched_on) events[*wire.watched_on].push_back({wire.index, wire.generation, true});
  }
  // Handles one event of `loop`, as a worker does.
  bool event_one(LoopId loop) {
    if (events[loop].empty()) return false;
    const Event event = events[loop].front();
    events[loop].pop_front();
    here_ = loop;
    const pool::EventClaim claim = pool::claim_event(event.index, event.generation, loop);
    if (claim.kind == pool::EventClaim::Kind::stale) return true;
    auto& wire = static_cast<FakeConnection&>(*claim.pooled);
    wire.hangup_noted |= event.hangup;
    if (claim.kind == pool::EventClaim::Kind::session && event.hangup) {
      retire(*claim.destination, wire, pool::CloseCause::peer_closed);
    }
    if (claim.kind == pool::EventClaim::Kind::inspecting) {
      if (wire.clean_for_reuse()) {
        pool::keep_inspected(event.index, now);
      } else {
        const bool in_order = wire.peer_closed && !wire.dirty;
        pool::close_inspected(event.index, pool::CloseCause::peer_closed, now,
                              in_order ? pool::OriginClose::in_order : pool::OriginClose::abrupt);
      }
    }
    return true;
  }
  // A session's report about itself, on its own loop.
  void retire(Destination& destination, FakeConnection& wire, pool::CloseCause cause) {
    here_ = *wire.watched_on;
    wire.retired = true;
    destination.retire(wire.index, wire.generation, cause, now);
  }
  void set_streams(Destination& destination, FakeConnection& wire, std::uint32_t streams) {
    here_ = *wire.watched_on;
    wire.most = streams;
    destination.set_streams(wire.index, wire.generation, streams, now);
  }
  void first_response(Destination& destination, FakeConnection& wire) {
    here_ = *wire.watched_on;
    destination.first_response(wire.index, wire.generation, wire.most, now);
  }
  std::uint32_t dials_of(const Destination& destination) const {
    std::uint32_t count = 0;
    for (const Dial& dial : dials) count += dial.destination == &destination ? 1 : 0;
    return count;
  }
  // Counts what the messages in flight hold of `destination`.
  pool::Outstanding messages_of(const Destination& destination) const {
    pool::Outstanding sum;
    for (const auto& box : mail) {
      for (pool::Delivery* delivery : box) {
        if (const auto* grant = dynamic_cast<pool::Grant*>(delivery)) {
          if (&grant->entry->value.owner->self != &destination) continue;
          ++sum.grants;
          ++sum.by_class[grant->share];
          sum.stream_grants += grant->entry->multiplexing().pinned ? 1 : 0;
        } else if (const auto* rejection = dynamic_cast<pool::Rejection*>(delivery)) {
          sum.rejections += &rejection->owner->self == &destination ? 1 : 0;
        } else if (const auto* cancel = dynamic_cast<pool::CancelDialMessage*>(delivery)) {
          sum.cancels += &cancel->entry->value.owner->self == &destination ? 1 : 0;
        }
      }
    }
    return sum;
  }
  bool mail_empty() const {
    for (const auto& box : mail) {
      if (!box.empty()) return false;
    }
    return true;
  }

  FakeAddresses addresses;  // of one destination, or of none
  Instant now = Instant(std::chrono::hours(1));
  std::vector<std::deque<pool::Delivery*>> mail;
  std::vector<std::deque<Event>> events;
  std::list<Dial> dials;
  std::vector<std::pair<Instant, Destination*>> wakes;
  // `one` may be destroyed: only its address is compared.
  bool is_live(const FakeConnection& one) const {
    return std::any_of(live.begin(), live.end(), [&one](const FakeConnection* each) { return each == &one; });
  }
  std::set<FakeConnection*, ByAge> live;
  std::vector<pool::OpenCause> opened;  // in order
  std::vector<pool::CloseCause> closed;
  std::size_t most = 0;  // live and dialing at once
  std::uint64_t made = 0, moves = 0;
  std::uint64_t recalled = 0, given_up = 0;
  int pauses_ended = 0;  // by themselves
  std::vector<pool::SizeChange> resized;
  bool dials_are_past_tcp = false;
  bool one_kind = false;           // every dial serves every borrower, one each
  bool attach_fails = false;       // the next one fails
  bool next_is_dirty = false;      // the next connection has data pending
  std::uint32_t next_streams = 0;  // of the next connections; 0: they are not sessions
  std::string wrong;               // the first violation

 private:
  Dial take(std::size_t n) {
    auto at = dials.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(n));
    Dial dial = std::move(*at);
    dials.erase(at);
    return dial;
  }
  LoopId here_ = 0;
  bool delivering_ = false;
};

// A borrower that keeps its lease.
class TestBorrower final : public pool::Borrower {
 public:
  enum class State : std::uint8_t { idle, waiting, leased, refused };

  TestBorrower(FakeEnvironment& world, LoopId loop) : world_(world), loop_(loop) {}

  State borrow(Destination& destination, const pool::BorrowRequest& want = {}) {
    world_.on(loop_);
    calling_ = true;
    auto result = destination.borrow(*this, want, world_.now);
    calling_ = false;
    destination_ = &destination;
    want_ = want;
    if (auto* granted = std::get_if<pool::Lease>(&result)) {
      take(std::move(*granted));
    } else if (auto* no = std::get_if<Fault>(&result)) {
      fault = std::move(*no);
      state = State::refused;
    } else {
      state = State::waiting;
    }
    return state;
  }
  void cancel() {
    world_.on(loop_);
    calling_ = true;
    destination_->cancel(*this, world_.now);
    calling_ = false;
    state = State::idle;
  }
  void release() {
    ++wire().served;
    leave();
    lease.release(world_.now);
    calling_ = false;
  }
  void return_unused() {
    leave();
    lease.return_unused(world_.now);
    calling_ = false;
  }
  void discard(pool::CloseCause cause) {
    leave();
    lease.discard(cause, world_.now);
    calling_ = false;
  }
  void lose() {  // a borrower's error: the lease is destroyed without release
    leave();
    { const pool::Lease dies(std::move(lease)); }
    calling_ = false;
  }
  void on_lease(pool::Lease granted) override {
    check_call("on_lease");
    take(std::move(granted));
  }
  void on_refused(Fault no) override {
    check_call("on_refused");
    fault = std::move(no);
    state = State::refused;
    ++refusals;
  }
  // Adds what this borrower holds of `destination`.
  void add_to(pool::Outstanding& sum, const Destination& destination) const {
    if (destination_ != &destination || (state != State::leased && state != State::waiting)) return;
    sum.tunnel_places += want_.tunnel ? 1 : 0;
    if (state != State::leased) return;
    ++sum.leases;
    ++sum.by_class[share_of(want_)];
  }
  FakeConnection& wire() { return static_cast<FakeConnection&>(*lease); }
  LoopId loop() const { return loop_; }
  Destination* destination() const { return destination_; }

  State state = State::idle;
  pool::Lease lease;
  std::optional<Fault> fault;
  int leases = 0, refusals = 0;
  std::uint64_t order = 0;  // for the test's use
  pool::ProtocolMask kind = pool::ProtocolMask::any;
  bool only_new = false;  // accepts no connection that was used before, except a session

 private:
  void take(pool::Lease granted) {
    lease = std::move(granted);
    state = State::leased;
    ++leases;
    ++wire().users;
    if (!accepts(kind, wire().protocol())) world_.wrong = "given to one who wanted the other kind";
    if (lease.home() != wire().watched_on) world_.wrong = "the lease names another home than the connection has";
    if (lease.shared() != wire().session()) world_.wrong = "the lease takes it for another kind";
    if (wire().session()) return;
    if (lease.reused() != (wire().served != 0)) world_.wrong = "the lease miscounts the borrowers that used it";
    if (only_new && lease.reused()) world_.wrong = "given what had served to one who takes only new ones";
    if (wire().users != 1) world_.wrong = "two borrowers on one connection";
    if (wire().watched_on != loop_) world_.wrong = "lent on a loop that does not watch it";
  }
  void leave() {
    world_.on(loop_);
    --wire().users;
    state = State::idle;
    calling_ = true;
  }
  void check_call(const char* what) {
    if (calling_) world_.wrong = std::string(what) + " from inside a call of the borrower";
    if (state != State::waiting) world_.wrong = std::string(what) + " for one who does not wait";
    if (world_.here() != loop_) world_.wrong = std::string(what) + " on another loop";
  }
  FakeEnvironment& world_;
  const LoopId loop_;
  Destination* destination_ = nullptr;
  pool::BorrowRequest want_;
  bool calling_ = false;
};

// The recount of `destination`, to which `borrowers` (pointers) and messages in flight add what they hold.
template <class Borrowers>
std::string audit(const FakeEnvironment& world, const Destination& destination, const Borrowers& borrowers) {
  pool::Outstanding outstanding = world.messages_of(destination);
  for (const auto& borrower : borrowers) borrower->add_to(outstanding, destination);
  if (world.addresses.serve(destination) && world.addresses.leases() != outstanding.leases + outstanding.grants) {
    return "the addresses count other leases than there are";
  }
  return destination.audit(&outstanding).text();
}

}  // namespace carpool::test
