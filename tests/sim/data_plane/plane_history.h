// PlaneHistory: runs one plan. The plan's seed chooses the order of events; then everything completes, and the
// invariants of the end are checked.
#pragma once

#include <string>

#include "tests/sim/data_plane/plane_world.h"

namespace carpool::test {

class PlaneHistory {
 public:
  explicit PlaneHistory(const Plan& plan) : world_(plan) {}

  // Returns the failure, or an empty string.
  std::string run() {
    const std::uint32_t steps = 50 + pick(world_.random, 400);
    for (std::uint32_t n = 0; n < steps && !done(); ++n) {
      world_.join(n);
      step();
      if (!world_.account.wrong.empty()) return world_.account.wrong;
      if (n % 32 != 0) continue;
      if (std::string wrong = world_.audit(); !wrong.empty()) return wrong;
    }
    return run_to_completion();
  }
  const Account& account() const { return world_.account; }

 private:
  void step() {
    Random& random = world_.random;
    if (world_.commands() != 0 && pick(random, world_.commands()) == 0) return world_.command();
    switch (pick(random, 10)) {
      case 0:
      case 1:
        if (ClientLink& client_link = some(world_.client_links); client_link.joined) client_link.client.send();
        return;
      case 2:
        return static_cast<void>(some(world_.client_links).client.land(some_bytes()));
      case 3:
        return static_cast<void>(some(world_.client_links).client.read(some_bytes()));
      case 4:
      case 5:
        if (!world_.links.empty()) PlaneWorld::play(some(world_.links), some_bytes());
        return;
      case 6:
        if (world_.many_addresses() && chance(random, 4)) world_.toggle_address();
        if (world_.many_addresses() && chance(random, 5)) world_.pass(std::chrono::milliseconds(pick(random, 900)));
        if (chance(random, 5)) world_.pass(std::chrono::milliseconds(pick(random, 100)));
        return;
      default:
        world_.turn(static_cast<LoopId>(pick(random, static_cast<std::uint32_t>(world_.planes.size()))), false);
    }
  }
  std::size_t some_bytes() { return chance(world_.random, 30) ? 1 + pick(world_.random, 60) : SIZE_MAX; }
  template <class List>
  typename List::value_type& some(List& list) {
    auto at = list.begin();
    std::advance(at, pick(world_.random, static_cast<std::uint32_t>(list.size())));
    return *at;
  }
  bool done() const {
    return std::all_of(world_.client_links.begin(), world_.client_links.end(),
                       [](const auto& client_link) { return client_link.client.done(); });
  }

  std::string run_to_completion() {
    world_.join(UINT32_MAX);
    world_.resume_all();
    // A client may send one request after another, and each origin may be silent until a limit ends its response.
    for (std::size_t rounds = 0; rounds < 400 * (1 + world_.account.requests.size() / 3); ++rounds) {
      if (!world_.become_idle()) return "it never came to rest";
      if (std::string wrong = world_.overdue(); !wrong.empty()) return wrong;
      if (!world_.account.wrong.empty()) return world_.account.wrong;
      bool sent = false;
      for (ClientLink& client_link : world_.client_links) sent |= client_link.client.send();
      if (done()) break;
      if (!sent) world_.pass(std::chrono::milliseconds(500));
    }
    return look_at_the_end();
  }
  std::string look_at_the_end() {
    exec::assume_on_loop();
    for (const ClientLink& client_link : world_.client_links) {
      if (!client_link.client.done()) return "a client waits for ever: " + waiting_for(client_link.client);
    }
    world_.account.check_closed_tunnels();
    if (!world_.account.wrong.empty()) return world_.account.wrong;
    if (std::string wrong = world_.audit(); !wrong.empty()) return wrong;
    if (!drained_clients_leave()) return "a client that was told to leave keeps its connection";
    world_.stop();
    if (world_.lent() != 0) return "something is still lent";
    for (const auto& plane : world_.planes) {
      if (!plane->idle()) return "an exchange never ended";
    }
    for (const OriginLink& link : world_.links) {
      if (link.connection != nullptr || link.place != nullptr) return "a connection survived the stop";
    }
    if (!world_.account.noisy_clients &&
        world_.account.dials > 4 + world_.account.requests.size() * Account::kMaxAttempts)
      return "too many dials";
    return world_.audit();
  }
  bool drained_clients_leave() {
    if (!world_.all_read() || world_.account.noisy_clients) return true;
    constexpr int kLeavesWithin = 20;  // seconds: a last request that crosses the close has 12
    for (int seconds = 0; seconds < kLeavesWithin && world_.any_drained(); ++seconds) {
      world_.pass(std::chrono::seconds(1));
      if (!world_.become_idle()) return false;
    }
    return !world_.any_drained();
  }
  static std::string waiting_for(const PlaneClient& client) {
    const RequestRecord* const one = client.open_request();
    return one == nullptr ? "nothing asked" : one->token;
  }

  PlaneWorld world_;
};

}  // namespace carpool::test
