#include "pool/directory/what_if.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "pool/destination/snapshot.h"
#include "pool/directory/replay_plan.h"
#include "pool/queue/delivery.h"

namespace carpool::pool {

namespace {
constexpr Duration kSweepEvery = std::chrono::milliseconds(500);

struct FakeConnection final : PooledConnection {
  FakeConnection(std::uint64_t number, std::uint32_t streams) : id(number), streams_(streams) {}
  Protocol protocol() const override { return streams_ > 1 ? Protocol::h2 : Protocol::h1; }
  std::uint32_t streams() const override { return streams_; }
  bool clean_for_reuse() override { return true; }
  const std::uint64_t id;
  std::uint32_t index = 0, generation = 0;
  std::uint64_t idle_periods = 0;  // number of idle periods: a close planned for an earlier one is void
  std::uint32_t users = 0;

 private:
  const std::uint32_t streams_;
};

// A replay evaluates one size.
Limits of_fixed_size(Limits limits) {
  limits.min_size = limits.max_size = 0;
  return limits;
}

class Simulation;

// Replays one recorded borrow.
class SimulatedBorrower final : public Borrower {
 public:
  SimulatedBorrower(Simulation& simulation, Duration held) : simulation_(simulation), held_(held) {}
  // `next` arrives `gap` after this one's end.
  void followed_by(SimulatedBorrower& next, Duration gap) {
    next_ = &next;
    gap_ = gap;
  }
  SimulatedBorrower* next() const { return next_; }
  Duration gap() const { return gap_; }
  void arrive();
  void leave();
  void give_up();
  void on_lease(Lease lease) override;
  void on_refused(Fault) override;

 private:
  Simulation& simulation_;
  const Duration held_;
  SimulatedBorrower* next_ = nullptr;
  Duration gap_{};
  Lease lease_;
  bool waiting_ = false;
};

enum class Step : std::uint8_t { arrive, leave, give_up, dial_ends, deliver, wake, origin_closes, sweep };

struct Event {
  Instant when;
  std::uint64_t order;  // breaks ties: the one planned first
  Step step;
  void* what = nullptr;
  std::uint64_t connection = 0, idle_period = 0;
  bool operator<(const Event& other) const { return std::tie(other.when, other.order) < std::tie(when, order); }
};

// The environment of one destination, with a virtual clock.
class Simulation final : public Environment {
 public:
  Simulation(const Workload& load, const Limits& limits, Duration wait_timeout)
      : load_(load),
        wait_timeout_(wait_timeout),
        size_(limits.size),
        pool_(any_origin(), of_fixed_size(limits), *this, 1) {}
  SimulationResult play();

  // ---- called by the pool ----
  void dial(Destination&, Reservation reservation) override {
    dials_.push_back(std::move(reservation));  // all dials take the same time: they end in order
    plan(now_ + load_.dial_time, Step::dial_ends);
  }
  void deliver(LoopId, Delivery& delivery) override { plan(now_, Step::deliver, &delivery); }
  void wake_at(Destination&, Instant when) override { plan(when, Step::wake); }
  void detach(PooledConnection&, LoopId) override {}
  bool attach(PooledConnection&, std::uint32_t, std::uint32_t) override { return true; }
  void dispose(PooledConnection* pooled, CloseCause) override {
    const std::unique_ptr<FakeConnection> dies(static_cast<FakeConnection*>(pooled));
    connections_.erase(dies->id);
  }
  LoopId here() const override { return 0; }

  // ---- called by the borrowers ----
  Instant now() const { return now_; }
  Destination& pool() { return pool_; }
  void plan(Instant when, Step step, void* what = nullptr) { events_.push({when, ++planned_, step, what, 0, 0}); }
  void plan_give_up(SimulatedBorrower& borrower) { plan(now_ + wait_timeout_, Step::give_up, &borrower); }
  void granted(SimulatedBorrower& borrower, const Lease& lease, Duration waited, Duration held);
  void give_back(SimulatedBorrower& borrower, Lease lease);
  void refused(SimulatedBorrower& borrower, bool in_time);

 private:
  static Origin any_origin() {
    Origin origin;
    origin.host = "replay";
    origin.port = 80;
    return origin;
  }
  void perform(const Event& event);
  void finished(const SimulatedBorrower& borrower);
  void end_dial();
  void plan_close(std::uint64_t id, std::uint64_t idle_period);
  void origin_closes(std::uint64_t id, std::uint64_t idle_period);
  void finish();
  void summarize();

  const Workload& load_;
  const Duration wait_timeout_;
  const std::uint32_t size_;
  Instant now_{};
  std::priority_queue<Event> events_;
  std::uint64_t planned_ = 0, connections_made_ = 0;
  std::deque<Reservation> dials_;
  std::unordered_map<std::uint64_t, FakeConnection*> connections_;
  std::deque<SimulatedBorrower> borrowers_;
  std::size_t unfinished_ = 0;  // borrowers that are not finished
  std::vector<Duration> waits_;
  SimulationResult outcome_;
  bool over_ = false;
  Destination pool_;
};

// ---- the simulated borrower ----

void SimulatedBorrower::arrive() {
  auto result = simulation_.pool().borrow(*this, {}, simulation_.now());
  if (auto* lease = std::get_if<Lease>(&result)) {
    lease_ = std::move(*lease);
    return simulation_.granted(*this, lease_, Duration::zero(), held_);
  }
  if (std::holds_alternative<Fault>(result)) return simulation_.refused(*this, true);
  waiting_ = true;
  simulation_.plan_give_up(*this);
}

void SimulatedBorrower::on_lease(Lease lease) {
  waiting_ = false;
  lease_ = std::move(lease);
  simulation_.granted(*this, lease_, lease_.waited(), held_);
}

void SimulatedBorrower::on_refused(Fault) {
  waiting_ = false;
  simulation_.refused(*this, true);
}

void SimulatedBorrower::leave() {
  simulation_.give_back(*this, std::move(lease_));
}

void SimulatedBorrower::give_up() {
  if (!std::exchange(waiting_, false)) return;
  simulation_.pool().cancel(*this, simulation_.now());
  simulation_.refused(*this, false);
}

// ---- the simulation ----

void Simulation::granted(SimulatedBorrower& borrower, const Lease& lease, Duration waited, Duration held) {
  waits_.push_back(waited);
  ++static_cast<FakeConnection&>(*lease).users;
  ++outcome_.served;
  if (lease.reused()) ++outcome_.reused;
  if (waited > Duration::zero()) ++outcome_.waited;
  plan(now_ + held, Step::leave, &borrower);
}

void Simulation::refused(SimulatedBorrower& borrower, bool in_time) {
  ++(in_time ? outcome_.refused : outcome_.timed_out);
  finished(borrower);
}

void Simulation::finished(const SimulatedBorrower& borrower) {
  --unfinished_;
  if (borrower.next() != nullptr) plan(now_ + borrower.gap(), Step::arrive, borrower.next());
}

void Simulation::give_back(SimulatedBorrower& borrower, Lease lease) {
  FakeConnection& connection = static_cast<FakeConnection&>(*lease);
  const std::uint64_t id = connection.id, idle_period = ++connection.idle_periods;
  const bool idle = --connection.users == 0;
  lease.release(now_);
  finished(borrower);
  if (idle) plan_close(id, idle_period);
}

void Simulation::end_dial() {
  Reservation reservation = std::move(dials_.front());
  dials_.pop_front();
  auto connection = std::make_unique<FakeConnection>(++connections_made_, load_.streams);
  connection->index = reservation.index();
  connection->generation = reservation.generation();
  connections_.emplace(connection->id, connection.get());
  const std::uint64_t id = connection->id;
  pool_.dialed(std::move(reservation), std::move(connection), now_);
  plan_close(id, 0);
}

// Plans the origin's close of a connection that may be idle from now on; a use of it makes the plan void.
void Simulation::plan_close(std::uint64_t id, std::uint64_t idle_period) {
  if (!load_.origin_closes_after || connections_.count(id) == 0) return;
  events_.push({now_ + *load_.origin_closes_after, ++planned_, Step::origin_closes, nullptr, id, idle_period});
}

void Simulation::origin_closes(std::uint64_t id, std::uint64_t idle_period) {
  const auto found = connections_.find(id);
  if (found == connections_.end() || found->second->idle_periods != idle_period || found->second->users != 0) return;
  const std::uint32_t index = found->second->index, generation = found->second->generation;
  const EventClaim claim = claim_event(index, generation, 0);
  if (claim.kind == EventClaim::Kind::session) return pool_.retire(index, generation, CloseCause::peer_closed, now_);
  if (claim.kind == EventClaim::Kind::inspecting) close_inspected(index, CloseCause::peer_closed, now_);
}

void Simulation::perform(const Event& event) {
  switch (event.step) {
    case Step::arrive:
      return static_cast<SimulatedBorrower*>(event.what)->arrive();
    case Step::leave:
      return static_cast<SimulatedBorrower*>(event.what)->leave();
    case Step::give_up:
      return static_cast<SimulatedBorrower*>(event.what)->give_up();
    case Step::dial_ends:
      return end_dial();
    case Step::deliver:
      return static_cast<Delivery*>(event.what)->arrive(now_);
    case Step::wake:
      return over_ ? void() : pool_.wake(now_);
    case Step::origin_closes:
      return over_ ? void() : origin_closes(event.connection, event.idle_period);
    case Step::sweep:
      if (over_) return;
      pool_.sweep(now_);
      return plan(now_ + kSweepEvery, Step::sweep);
  }
}

SimulationResult Simulation::play() {
  const std::vector<ReplayStep> steps = plan_replay(load_.borrows);
  if (steps.empty()) return {};
  for (const ReplayStep& step : steps) {
    SimulatedBorrower& borrower = borrowers_.emplace_back(*this, step.borrow.held);
    if (step.after == ReplayStep::kNone)
      plan(step.borrow.arrived, Step::arrive, &borrower);
    else
      borrowers_[step.after].followed_by(borrower, step.gap);
  }
  const Instant first = steps.front().borrow.arrived;
  now_ = load_.warm ? first - load_.dial_time : first;
  unfinished_ = borrowers_.size();
  while (load_.warm && pool_.warm_up(size_, size_, now_) != 0) {  // each call begins a bounded number of dials
  }
  plan(first, Step::sweep);
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    now_ = std::max(now_, event.when);
    perform(event);
    if (unfinished_ == 0 && !over_) finish();
  }
  return outcome_;
}

// Called when the last borrower finished: work in progress ends, nothing new starts.
void Simulation::finish() {
  over_ = true;
  summarize();
  pool_.stop(now_);
}

void Simulation::summarize() {
  const Destination::Snapshot end = pool_.snapshot(now_);
  outcome_.opened = end.opened_total();
  outcome_.opened_by = end.opened;
  outcome_.closed_by = end.closed;
  outcome_.peak = end.peak;
  if (waits_.empty()) return;
  std::sort(waits_.begin(), waits_.end());
  Duration sum{};
  for (const Duration wait : waits_) sum += wait;
  outcome_.mean_wait = sum / static_cast<Duration::rep>(waits_.size());
  outcome_.p50_wait = waits_[(waits_.size() - 1) / 2];
  outcome_.p99_wait = waits_[(waits_.size() * 99 + 99) / 100 - 1];
  outcome_.p995_wait = waits_[(waits_.size() * 199 + 199) / 200 - 1];
  outcome_.longest_wait = waits_.back();
}
}  // namespace

SimulationResult simulate(const Workload& load, const Limits& limits, Duration wait_timeout) {
  return Simulation(load, limits, wait_timeout).play();
}

}  // namespace carpool::pool
