// Endpoint, Endpoints: the addresses behind one origin as its pool sees them: how much each is used and how fast it
// responds. With two of them or more, requests go to the less loaded of two random ones (Mitzenmacher's power of two
// choices) instead of the connection that the strategy would choose.
//
// Orders are relaxed, except for the table of addresses: counts and hints that publish nothing. A choice on an old
// value is not the best one, but many choices are still even.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "base/clock.h"
#include "pool/policy/search_strategy.h"

namespace carpool::pool {

// One address. It outlives every connection to it, and its memory outlives the pool: a search may read it at any time.
class Endpoint {
 public:
  static constexpr std::uint32_t kWhole = 1U << 16;
  static constexpr std::uint32_t kLeast = kWhole / 16;  // of its share, however slow or new it is
  // A difference that a busy processor can cause.
  static constexpr Duration kNegligible = std::chrono::milliseconds(5);

  void lent() {
    leases_.fetch_add(1, std::memory_order_relaxed);
    picks_.fetch_add(1, std::memory_order_relaxed);
    lent_.fetch_add(1, std::memory_order_relaxed);
  }
  void returned() { leases_.fetch_sub(1, std::memory_order_relaxed); }
  // A choice that skipped this address, because it is slow or new, counts as its turn, so that it does not catch up. It
  // counts twice, because the address that serves instead also counts the request.
  void passed_over() { picks_.fetch_add(2, std::memory_order_relaxed); }

  // A response began `took` after its request. The moving average begins with the shorter of the first two, because the
  // first response of a process is often slow. Then it rises slowly, by a thirty-second at most for each response, and
  // falls quickly: single slow responses have little effect.
  void answered(Duration took) {
    const Duration::rep sample = std::max<Duration::rep>(1, took.count());
    const Duration::rep old = response_time_.load(std::memory_order_relaxed);
    if (old < 0) return response_time_.store(std::min(sample, -old), std::memory_order_relaxed);
    const Duration::rep change = sample > old ? (std::min(sample, 2 * old) - old) / 32 : (sample - old) / 8;
    response_time_.store(old == 0 ? -sample : std::max<Duration::rep>(1, old + change), std::memory_order_relaxed);
  }
  // Starts a new or recovered address at `when`: its share grows from then on. Instant{}: it has its whole share.
  void begin(Instant when) { began_.store(when.time_since_epoch().count(), std::memory_order_relaxed); }
  // Resets the object, whose memory serves another address.
  void reset() {
    picks_.store(0, std::memory_order_relaxed);
    lent_.store(0, std::memory_order_relaxed);
    measured_lent_.store(0, std::memory_order_relaxed);
    recent_.store(0, std::memory_order_relaxed);
    response_time_.store(0, std::memory_order_relaxed);
    begin(Instant{});
  }

  std::uint32_t leases() const { return leases_.load(std::memory_order_relaxed); }
  std::uint64_t total_leases() const { return lent_.load(std::memory_order_relaxed); }
  // Zero: unknown.
  Duration response_time() const { return Duration(std::abs(response_time_.load(std::memory_order_relaxed))); }

  // Returns the endpoint that gets the next request. `drawn`: a random number below kWhole.
  static Endpoint& choose(Endpoint& one, Endpoint& other, Duration slow_start, Instant now, std::uint32_t drawn) {
    one.measure(now);
    other.measure(now);
    Endpoint& best = other.before(one) ? other : one;
    Endpoint& rest = &best == &one ? other : one;
    best.limit_lag(rest);
    if (drawn < best.share_against(rest, slow_start, now)) return best;
    best.passed_over();
    return rest;
  }
  // Returns the part of its turns, of kWhole, in which the address is used: less for an address that is more than twice
  // as slow as the other one plus kNegligible, or new; never zero, so that a change is detected.
  std::uint32_t share_against(const Endpoint& other, Duration slow_start, Instant now) const {
    double share = 1;
    const Duration mine(response_time_.load(std::memory_order_relaxed)), theirs = other.response_time();
    const Duration allowed = 2 * theirs + kNegligible;
    if (theirs > Duration::zero() && mine > allowed) {  // not for a single response
      share = static_cast<double>(allowed.count()) / static_cast<double>(mine.count());
    }
    const Duration age = now - Instant(Duration(began_.load(std::memory_order_relaxed)));
    if (age < slow_start)
      share *= std::max(0.0, static_cast<double>(age.count()) / static_cast<double>(slow_start.count()));
    return std::clamp(static_cast<std::uint32_t>(share * kWhole), kLeast, kWhole);
  }

 private:
  // Turns that one can be behind another: the most it gets at once. Random pairs of 64 addresses differ by at most 6.
  // A larger lag comes from unequal loads; after them it would make the shares uneven for as many requests.
  static constexpr std::uint64_t kLeastLag = 4;
  // An address whose process waits for a processor gets what it misses as long as that is no more than the other one
  // served in this time: a lag that a load caused ends with the load.
  static constexpr Duration kRecent = std::chrono::milliseconds(50);

  // With equal turns, twice as many requests in progress are those of an address that is twice as slow; fewer are
  // chance.
  bool before(const Endpoint& other) const {
    const std::uint64_t mine = leases(), theirs = other.leases();
    if (mine > 2 * theirs || theirs > 2 * mine) return mine < theirs;
    return picks_.load(std::memory_order_relaxed) < other.picks_.load(std::memory_order_relaxed);
  }
  void limit_lag(const Endpoint& other) {
    const std::uint64_t ahead = other.picks_.load(std::memory_order_relaxed);
    const std::uint64_t allowed = std::max(kLeastLag, other.recent_.load(std::memory_order_relaxed));
    if (picks_.load(std::memory_order_relaxed) + allowed < ahead) {
      picks_.store(ahead - allowed, std::memory_order_relaxed);
    }
  }
  // Counts the requests of kRecent: those since the last count, which is older than that.
  void measure(Instant now) {
    Duration::rep began = measured_at_.load(std::memory_order_relaxed);
    const Duration elapsed = now - Instant(Duration(began));
    if (elapsed < kRecent) return;
    const Duration::rep next = now.time_since_epoch().count();
    if (!measured_at_.compare_exchange_strong(began, next, std::memory_order_relaxed)) return;  // another thread counts
    const std::uint64_t all = total_leases();
    const std::uint64_t before = measured_lent_.exchange(all, std::memory_order_relaxed);
    const std::uint64_t since = all > before ? all - before : 0;  // another thread may have counted later ones
    const auto periods = static_cast<std::uint64_t>(elapsed / kRecent);
    recent_.store(since / periods, std::memory_order_relaxed);
  }

  alignas(64) std::atomic<std::uint32_t> leases_{0};
  std::atomic<std::uint64_t> picks_{0}, lent_{0};
  std::atomic<Duration::rep> response_time_{0};  // negative: that of a single response
  std::atomic<Duration::rep> began_{0};
  std::atomic<Duration::rep> measured_at_{0};
  std::atomic<std::uint64_t> measured_lent_{0}, recent_{0};
};

// The state of all addresses, written by their owner, one thread at a time, and read by each borrow.
class Endpoints {
 public:
  static constexpr std::size_t kMaxReachable = 256;
  // Two different addresses. `other` is null if only one has a connection; both are, if none has.
  struct Pair {
    Endpoint* one = nullptr;
    Endpoint* other = nullptr;
  };

  // even: nothing is missing. lacking: one has no connection. uneven: one has at least two fewer than another.
  enum class Balance : std::uint8_t { even, lacking, uneven };

  // `count`: the number of addresses that share the requests; if it is below two, `strategy` selects the connection.
  void set(std::uint32_t count, Balance balance, Duration slow_start) {
    slow_start_.store(slow_start.count(), std::memory_order_relaxed);
    balance_.store(count < 2 ? Balance::even : balance, std::memory_order_relaxed);
    if (count < 2 || balance != Balance::uneven) needs_rebalance_.store(false, std::memory_order_relaxed);
    count_.store(count, std::memory_order_relaxed);
  }
  // Replaces the addresses that share the requests and have a connection: at most kMaxReachable. Throws std::bad_alloc.
  void reach(std::span<Endpoint* const> all) {
    if (table_ == nullptr && all.size() > 1) {
      table_ = std::make_unique<Table>();
      published_.store(table_.get(), std::memory_order_release);  // pairs with draw()
    }
    if (table_ == nullptr) return;
    for (std::size_t n = 0; n < all.size(); ++n) table_->all[n].store(all[n], std::memory_order_relaxed);
    table_->size.store(static_cast<std::uint32_t>(all.size()), std::memory_order_relaxed);
  }
  // Draws two of them. During a change they may be old ones, or one twice, which is then returned once.
  Pair draw(std::uint32_t random) const {
    const Table* const table = published_.load(std::memory_order_acquire);  // pairs with reach()
    const std::uint32_t size = table == nullptr ? 0 : table->size.load(std::memory_order_relaxed);
    if (size == 0) return {};
    const auto at = [table](std::uint32_t n) { return table->all[n].load(std::memory_order_relaxed); };
    if (size == 1) return {at(0), nullptr};
    const std::uint32_t drawn = scaled_to(random, size * (size - 1)), first = drawn / (size - 1);
    const std::uint32_t second = drawn % (size - 1);
    Endpoint* const one = at(first);
    Endpoint* const other = at(second < first ? second : second + 1);
    return {one, other == one ? nullptr : other};
  }
  std::uint32_t count() const { return count_.load(std::memory_order_relaxed); }
  bool spreads() const { return count() > 1; }
  Balance balance() const { return balance_.load(std::memory_order_relaxed); }
  Duration slow_start() const { return Duration(slow_start_.load(std::memory_order_relaxed)); }

  // Called when the pool is full: a connection to an address that has too many should make room for another address.
  // set() withdraws the request when no address has too many any more.
  void request_rebalance() {
    if (balance() == Balance::uneven && !needs_rebalance()) needs_rebalance_.store(true, std::memory_order_relaxed);
  }
  bool needs_rebalance() const { return needs_rebalance_.load(std::memory_order_relaxed); }
  void rebalance_done() { needs_rebalance_.store(false, std::memory_order_relaxed); }

 private:
  struct Table {
    std::atomic<std::uint32_t> size{0};
    std::array<std::atomic<Endpoint*>, kMaxReachable> all{};
  };

  std::unique_ptr<Table> table_;  // made when it is first needed: most origins have one address
  std::atomic<Table*> published_{nullptr};
  std::atomic<std::uint32_t> count_{0};
  std::atomic<Balance> balance_{Balance::even};
  std::atomic<bool> needs_rebalance_{false};
  std::atomic<Duration::rep> slow_start_{0};
};

}  // namespace carpool::pool
