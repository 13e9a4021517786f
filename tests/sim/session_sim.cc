// session_sim: the proxy's HTTP/2 sessions, their upstream streams and the streams of other loops, with the real pool,
// on virtual clock and wires, driven by a seed: GOAWAY with and without warning, refused and reset streams, windows
// that shrink and stall, limits that fall, cut connections, clients that disconnect, mail in any order. One seed is
// one history. The oracles: no byte of one exchange in another, each request ends once, an origin processes none twice
// unless its client allows it, no window is overdrawn, none stalls while it is open, and at the end no lease is left.
//
//   session_sim [--seconds N] [--seed S] [--histories N]
#include <cstdio>

#include "pool/core/audit_report.h"
#include "pool/destination/snapshot.h"
#include "tests/sim/histories.h"
#include "tests/sim/session_borrower.h"

namespace carpool::test {
namespace {

using std::chrono::milliseconds;
using State = SessionBorrower::State;

struct Tally {
  std::uint64_t requests = 0, bytes = 0, resets = 0, sessions = 0;
};

class SessionHistory {
 public:
  explicit SessionHistory(std::uint64_t seed) : random_(seed), world_(random_, 1 + pick(random_, 3)) {
    const auto loops = static_cast<unsigned>(world_.hosts.size());
    pool::Limits limits;
    limits.size = 1 + pick(random_, 3);
    limits.max_waiting = 64;
    limits.expected_streams = 1 + pick(random_, 6);
    directory_ = std::make_unique<pool::Directory>(pool::DirectoryLimits{}, world_, loops);
    pool::Origin origin;
    origin.host = "origin.test";
    origin.port = 80;
    world_.destination = *directory_->at(origin, limits);
    world_.context.destination = world_.destination;
    world_.context.pool.max_streams = 1 + pick(random_, 10);
    world_.failing = chance(random_, 30) ? pick(random_, 30) : 0;
    const std::uint32_t askers = 1 + pick(random_, 12);
    for (std::uint32_t n = 0; n < askers; ++n) {
      const auto loop = static_cast<LoopId>(pick(random_, loops));
      borrowers_.push_back(std::make_unique<SessionBorrower>(world_, random_, loop));
    }
  }

  std::string run() {
    const std::uint32_t steps = 300 + pick(random_, 1500);
    for (std::uint32_t n = 0; n < steps; ++n) {
      step();
      if (std::string wrong = check(); !wrong.empty()) return wrong + " at step " + std::to_string(n);
    }
    return run_to_completion();
  }
  void add_to(Tally& tally) const {
    tally.requests += asked_;
    for (const auto& [number, planned_one] : world_.planned.all) {
      tally.bytes += planned_one.upload;
      for (const Response& response : planned_one.responses) tally.bytes += response.bytes;
    }
    for (const auto& host : world_.hosts) tally.resets += host->resets;
    tally.sessions += world_.destination->snapshot(world_.now).created;
  }

 private:
  void step() {
    if (chance(random_, 1)) return rest();
    switch (pick(random_, 12)) {
      case 0:
      case 1:
      case 2:
        return act(*borrowers_[pick(random_, static_cast<std::uint32_t>(borrowers_.size()))]);
      case 3:
      case 4:
      case 5:
        return static_cast<void>(world_.turn(any_loop(), false));
      case 6:
      case 7:
        if (Link* link = any_link()) world_.land(*link, 1 + pick(random_, chance(random_, 30) ? 20 : 40000));
        return;
      case 8:
      case 9:
      case 10:
        if (Link* link = any_link()) link->origin.act(world_.now, false);
        return;
      default:
        world_.now += milliseconds(chance(random_, 2) ? 6000 : pick(random_, 20));
        world_.on(any_loop());
        world_.wake();
    }
  }
  void act(SessionBorrower& borrower) {
    if (borrower.state() != State::idle) return borrower.act(false);
    borrower.begin(++asked_);
  }
  LoopId any_loop() { return static_cast<LoopId>(pick(random_, static_cast<std::uint32_t>(world_.hosts.size()))); }
  Link* any_link() {
    if (world_.links.empty()) return nullptr;
    auto at = world_.links.begin();
    std::advance(at, pick(random_, static_cast<std::uint32_t>(world_.links.size())));
    return &*at;
  }

  // ---- oracles ----

  std::string check() {
    if (!world_.planned.wrong.empty()) return world_.planned.wrong;
    for (Link& link : world_.links) {
      if (link.wire.overdrawn()) return "a window was overdrawn";
    }
    const auto now = world_.destination->snapshot(world_.now);
    if (now.opened_total() - now.closed_total() != now.alive()) return "the ledger does not balance";
    if (std::string wrong = world_.destination->audit().text(); !wrong.empty()) return wrong;
    return directory_->audit().text();
  }

  // Delivers everything in flight without advancing time.
  bool become_idle() {
    for (std::uint32_t rounds = 0; rounds < 100000; ++rounds) {
      bool moved = false;
      for (std::size_t n = 0; n < world_.hosts.size(); ++n) moved |= world_.turn(static_cast<LoopId>(n), true);
      for (Link& link : world_.links) moved |= world_.land(link, SIZE_MAX);
      if (!moved && world_.mail_empty()) return true;
    }
    return false;
  }

  void rest() {
    if (!become_idle()) world_.planned.complain("it never came to rest");
    for (const auto& borrower : borrowers_) borrower->note_idle();
    for (Link& link : world_.links) {
      if (link.origin.stalled()) world_.planned.complain("a stream stands still though its window is open");
    }
  }
  // All actions from here on are harmless: every request must end, whatever happened before.
  std::string run_to_completion() {
    world_.failing = 0;
    const Instant late = world_.now + std::chrono::minutes(10);
    while (world_.now < late) {
      rest();
      if (std::string wrong = check(); !wrong.empty()) return wrong + " while it completes";
      bool busy = false;
      for (const auto& borrower : borrowers_) {
        busy |= borrower->state() != State::idle;
        for (int times = 0; times < 4; ++times) borrower->act(true);
      }
      for (Link& link : world_.links) {
        busy |= link.origin.busy();
        link.origin.make_up(world_.now);
        for (int times = 0; times < 20; ++times) link.origin.act(world_.now, true);
      }
      if (!busy) break;
      world_.now += milliseconds(1);
      if (++idle_rounds_ % 64 == 0) world_.now = std::max(world_.now, std::min(world_.next_timer(), late));
      world_.on(0);
      world_.wake();
      if (idle_rounds_ > 200000) break;
    }
    return look_at_the_end();
  }
  std::string look_at_the_end() {
    if (!become_idle()) return "it never came to rest";
    for (const auto& borrower : borrowers_) {
      if (borrower->state() != State::idle) return "request " + std::to_string(borrower->number()) + " never ended";
    }
    for (const auto& [number, planned_one] : world_.planned.all) {
      if (planned_one.ends != 1) return "request " + std::to_string(number) + " did not end once";
    }
    for (const auto& host : world_.hosts) {
      if (host->remotes_out() != 0) return "a stream of another loop never came home";
    }
    if (world_.destination->snapshot(world_.now).leases() != 0) return "something is still lent";
    for (Link& link : world_.links) {
      exec::assume_on_loop();
      if (link.connection != nullptr && link.connection->session().streams() != 0) return "a session still has streams";
    }
    world_.on(0);
    directory_->stop(world_.now);
    if (!become_idle()) return "it never came to rest";
    for (const Link& link : world_.links) {
      if (link.connection != nullptr) return "a session survived the stop";
    }
    return check();
  }

  Random random_;
  SessionWorld world_;
  std::unique_ptr<pool::Directory> directory_;
  std::vector<std::unique_ptr<SessionBorrower>> borrowers_;
  std::uint64_t asked_ = 0;
  std::uint64_t idle_rounds_ = 0;
};

}  // namespace
}  // namespace carpool::test

int main(int argc, char** argv) {
  using namespace carpool::test;
  const Histories asked = histories_of("session_sim", argc, argv);
  Tally tally;
  const std::uint64_t done =
      run_histories<SessionHistory>(asked, [&tally](const SessionHistory& history) { history.add_to(tally); });
  std::printf(
      "%llu histories from seed %llu, %llu requests on %llu sessions, %llu MiB, %llu resets: "
      "no oracle complained\n",
      static_cast<unsigned long long>(done), static_cast<unsigned long long>(asked.seed),
      static_cast<unsigned long long>(tally.requests), static_cast<unsigned long long>(tally.sessions),
      static_cast<unsigned long long>(tally.bytes >> 20), static_cast<unsigned long long>(tally.resets));
  return 0;
}
