// TurnCheck: the oracle of the wait queue's order at each origin, observed from outside: the requests of one client and
// class are served in order; while a request waits, at most as many later requests of another client are served as the
// weight of their class allows.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "pool/queue/wait_queue.h"
#include "proxy/exchange/exchange.h"
#include "proxy/upstream/origin/origin_runtime.h"
#include "tests/sim/data_plane/account.h"

namespace carpool::test {

class TurnCheck {
 public:
  // `size`: of the pools. A class is that of a plan: 1 urgent, 0 usual; without `classes` all are equal.
  TurnCheck(Account& account, bool classes, std::uint32_t size) : account_(account), classes_(classes), size_(size) {}

  // Must be called after every turn, with every exchange; then end_turn().
  void see(const proxy::Exchange& exchange) LOOP_ONLY {
    if (exchange.state() == proxy::ExchangeState::idle || exchange.info().origin == nullptr) return;
    const RequestRecord* const one = account_.find_token(exchange.request().fields.get(kMarkField));
    if (exchange.holds_lease() && (one == nullptr || !urgent(*one))) ++usual_[exchange.info().origin];
    // HTTP/2 connections serve many at once; a retry and a tunnel have separate places.
    if (exchange.info().origin->protocols.h2 || exchange.info().retries != 0) return;
    if (one != nullptr && one->tunnels() && pool::WaitQueue::in(exchange)) ++tunnels_[one->client];
    if (one == nullptr || one->noisy() || one->tunnels() || account_.may_have_own_connection(*one)) return;
    Entry& entry = find(*one, exchange.info().origin);
    entry.seen = true;
    entry.seen_at = turn_;
    const bool waits = pool::WaitQueue::in(exchange);
    const bool asked = exchange.state() != proxy::ExchangeState::collecting;  // the pool; a grant may be on its way
    if (asked && entry.rank == 0) entry.rank = turn_;
    if (exchange.holds_lease() && !entry.served) served_.push_back(&entry);
    entry.leaves = !waits;
  }
  void end_turn() {
    for (Entry* const entry : served_) serve(*entry);
    served_.clear();
    usual_.clear();
    for (auto& [number, entry] : entries_) {
      if (entry.rank == turn_) count_ahead(entry);
    }
    tunnels_.clear();
    for (auto& [number, entry] : entries_) {
      if (entry.leaves && entry.left == 0 && entry.rank != 0) entry.left = turn_;
      if (entry.leaves || !entry.seen) entry.waits = false;
      if (entry.seen && !entry.leaves) entry.waits = true;
      entry.seen = false;
    }
    ++turn_;
  }

 private:
  struct Entry {
    const RequestRecord* request = nullptr;
    const proxy::OriginRuntime* origin = nullptr;
    std::uint64_t rank = 0;     // in order of asking; 0: not yet
    std::uint64_t seen_at = 0;  // the turn
    std::uint32_t ahead = 0;    // requests of its client that waited when it arrived
    std::uint64_t left = 0;     // the turn in which it left the queue; 0: not yet
    bool waits = false;         // since the last turn at least
    bool leaves = false, seen = false, served = false;
    std::map<std::pair<const void*, bool>, std::uint32_t> overtaken;  // by client and class
  };

  Entry& find(const RequestRecord& one, const proxy::OriginRuntime* origin) {
    Entry& entry = entries_[one.number];
    entry.request = &one;
    // A reload replaced its pool: it asks the next one for its turn.
    if (entry.origin != origin || entry.seen_at + 1 < turn_) {
      entry.rank = entry.left = 0;
      entry.waits = false;
    }
    entry.origin = origin;
    return entry;
  }
  // The requests that a client sent in one turn may be served in any order.
  void count_ahead(Entry& entry) const {
    const auto tunnels = tunnels_.find(entry.request->client);
    if (tunnels != tunnels_.end()) entry.ahead += tunnels->second;
    for (const auto& [number, other] : entries_) {
      entry.ahead += &other != &entry && other.seen && !other.served && same_client(entry, other) ? 1 : 0;
    }
  }
  void serve(Entry& entry) {
    entry.served = true;
    for (auto& [number, other] : entries_) {
      const bool overtakes = entry.rank > other.rank;
      const bool later =
          overtakes || entry.left == 0 || entry.left > other.rank;  // it is granted after the other one arrived
      // A request that is not repeated takes no connection that was idle for long. A PUT may have a body.
      const bool choosy = other.request->method() == "POST" || other.request->method() == "PUT";
      if (&other == &entry || !other.seen || !other.waits || other.leaves || other.origin != entry.origin || !later ||
          choosy)
        continue;
      const bool above = urgent(*entry.request) && !urgent(*other.request);
      const bool below = urgent(*other.request) && !urgent(*entry.request);
      if (above && reserved(other)) continue;
      if (same_client(entry, other) && (above || below)) continue;
      if (same_client(entry, other) && !overtakes) continue;
      if (same_client(entry, other)) {
        account_.complain(*entry.request,
                          entry.request->token + " overtook " + other.request->token + " of its own client");
      } else if (++other.overtaken[{entry.request->client, urgent(*entry.request)}] >
                 (above ? kWeight * (other.ahead + 1) : other.ahead) + 2 + retries()) {
        account_.complain(*other.request, other.request->token + " waited while another client had turn after turn");
      }
    }
  }
  // A retry goes first and advances the queue's virtual time, which places the requests that follow.
  std::uint32_t retries() const {
    std::size_t retries = 0;
    for (const RequestRecord& one : account_.requests) retries += one.attempts.size() - (one.attempts.empty() ? 0 : 1);
    return static_cast<std::uint32_t>(retries);
  }
  static constexpr std::uint32_t kWeight = 4;  // of the usual class, in turns of the urgent one
  bool urgent(const RequestRecord& one) const { return classes_ && one.plan.urgent != 0; }
  // The usual class has reached its limit: the rest is reserved for the urgent one.
  bool reserved(const Entry& waiter) const {
    const auto held = usual_.find(waiter.origin);
    return held != usual_.end() && held->second + 1 >= size_;
  }
  static bool same_client(const Entry& one, const Entry& other) { return one.request->client == other.request->client; }

  Account& account_;
  const bool classes_;
  const std::uint32_t size_;
  std::map<const proxy::OriginRuntime*, std::uint32_t> usual_;  // leases of the usual class, in this turn
  std::map<const void*, std::uint32_t> tunnels_;                // that wait in this turn, by client
  std::map<std::uint32_t, Entry> entries_;                      // by number of the request
  std::vector<Entry*> served_;
  std::uint64_t turn_ = 1;
};

}  // namespace carpool::test
