// AddressSet: the addresses of one origin, with the number of connections and dials to each and its consecutive
// failures. It orders the addresses for a dial: of two random candidates of the preferred family the one with fewer
// connections and dials goes first (Mitzenmacher's power of two choices), or one that has none, and ejected addresses
// go last (passive outlier ejection, as in Envoy). It also identifies connections to an address that the name no longer
// resolves to, or that has more of them than its share while another lacks some.
//
// It registers its addresses with the pool (pool/policy/endpoint.h), which distributes the requests over them.
//
// Shared by all loops behind one mutex, which dials, connection ends, checks and failures take. While no address has
// failures, a successful request only reads one atomic.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"
#include "pool/origin.h"
#include "pool/policy/endpoint.h"
#include "proxy/net/address.h"

namespace carpool::proxy::net {

class AddressPolicy;

// [pool.addresses]
struct AddressRules {
  std::uint32_t eject_after = 5;                   // consecutive failures; 0: never
  Duration eject_time = std::chrono::seconds(10);  // the first ejection; each relapse adds as much again
  Duration gone_after = std::chrono::seconds(30);  // an address missing from DNS for this long is gone
  // interval between closing two connections to addresses that are gone
  Duration retire_every = std::chrono::milliseconds(100);
  bool balance = true;                             // requests go to the less loaded of two addresses
  Duration slow_start = std::chrono::seconds(10);  // in which the share of a new address grows; zero: it has it at once
};

class AddressSet {
 public:
  // The longest ejection; also the time without a new one after which an address starts over.
  static constexpr Duration kMaxEjection = std::chrono::minutes(5);
  static constexpr std::size_t kMax = pool::Endpoints::kMaxReachable;

  // `endpoints`: the pool's data about them, which must outlive every call; nullptr: there is no pool.
  explicit AddressSet(pool::Endpoints* endpoints = nullptr);

  void follow(const AddressRules& rules);
  // Makes all further draws depend on `seed` alone: for simulations. Not 0.
  void draw_from(std::uint64_t seed);
  // Must be called as time passes: an ejection may have ended.
  void review(Instant now);

  // Takes the addresses that the name resolves to. Some name servers return a varying subset, so an address is gone
  // only after it has been missing for gone_after. Returns true if a known address became gone or came back.
  bool learn(const std::vector<Address>& addresses, Instant now);
  // Returns at most kMax addresses for a dial, ejected ones last; if all are ejected, they keep their order. Counts
  // the first as being dialed until dial_ended().
  std::vector<Address> order(std::vector<Address> addresses, Instant now);
  // Must be called after `policy` changed: connections to addresses that it does not permit any more are to be closed.
  // Returns true if there are some.
  bool apply_policy(const AddressPolicy& policy, const pool::Origin& origin);
  bool has_forbidden() const;  // returns true if there are some
  // `reached`: the dial did not end at another address or in a failure.
  void dial_ended(const Address& first, bool reached, Instant now);

  // Returns the pool's data about the address, valid as long as this object.
  pool::Endpoint& opened(const Address& address);
  void closed(const Address& address);
  // Reports that a dial to the address, or an exchange on a connection to it, failed or succeeded.
  void failed(const Address& address, Instant now);
  void answered(const Address& address) {
    if (failing_.load(std::memory_order_relaxed) != 0) clear_failures(address);
  }

  bool in_use() const;  // returns true if any address has a connection
  // Returns true if an address that is forbidden, gone or ejected has a connection.
  bool has_retiring(Instant now) const;
  // Returns true if an address with too many connections should lose one, so that another address gets it.
  bool needs_rebalance() const { return pool_ != nullptr && pool_->needs_rebalance(); }
  bool has_too_many(const Address& address) const;
  // Returns true if a connection to this address is the one that must close now: at most one every retire_every.
  bool closes_for_rebalance(const Address& address, Instant now);
  std::uint64_t ejections() const { return ejections_.load(std::memory_order_relaxed); }  // total
  // Changes when an address becomes gone, comes back, is ejected or forbidden, so that connections are checked again.
  // Relaxed: a thread that sees it late checks late.
  std::uint64_t version() const { return version_.load(std::memory_order_relaxed); }
  enum class Verdict : std::uint8_t { keep, keep_for_now, gone, ejected, forbidden };
  // keep_for_now: the address is gone, but another such connection was closed less than retire_every ago. Closing them
  // one by one avoids that all of them are redialed at once when an origin moves.
  Verdict verdict(const Address& address, Instant now);

  struct Info {
    std::string address;
    std::uint32_t open = 0, failures = 0, ejections = 0;
    bool ejected = false, gone = false;
    std::uint32_t busy = 0;      // leases: requests in progress
    std::uint64_t requests = 0;  // leases in all
    Duration response{};         // moving average of the time to the response; zero: unknown
    double share = 1;            // the part of its turns that it takes: below 1 while it is new
  };
  std::vector<Info> all(Instant now) const;
  struct Counts {
    std::uint32_t usable = 0, ejected = 0, gone = 0;
  };
  Counts count(Instant now) const;

 private:
  struct Place {
    Address address;
    std::uint32_t open = 0, dialing = 0;
    std::uint32_t failures = 0;   // consecutive
    std::uint32_t ejections = 0;  // total
    // ejections that each began within kMaxEjection of the end of the previous one
    std::uint32_t repeated_ejections = 0;
    Instant ejected_until{};
    bool named = true;       // not gone
    bool forbidden = false;  // by the rules of the last apply_policy()
    Instant named_at{};      // when DNS last listed it
    Instant missed_at{};     // when a dial that tried it first ended elsewhere, or it failed; Instant{}: it was reached
    pool::Endpoint* endpoint = nullptr;
    bool ejected(Instant now) const { return ejected_until > now; }
    bool needed() const { return named || open != 0 || dialing != 0; }
  };
  Place& at(const Address& address) REQUIRES(mutex_);
  Place* find(const Address& address) REQUIRES(mutex_);
  std::vector<Place>::iterator first_not_before(const Address& address) REQUIRES(mutex_);
  bool too_many(const Place& place) const REQUIRES(mutex_);
  void drop_unneeded() REQUIRES(mutex_);
  void clear_failures(const Address& address);
  void eject(Place& place, Instant now) REQUIRES(mutex_);
  bool shares_requests(const Place& place) const REQUIRES(mutex_);
  bool worth_a_dial(const Place& place) const REQUIRES(mutex_);
  void publish(Instant now) REQUIRES(mutex_);
  std::size_t first_choice(const std::vector<Address>& addresses, std::size_t count) REQUIRES(mutex_);

  pool::Endpoints* const pool_;
  mutable Mutex mutex_;
  AddressRules rules_ GUARDED_BY(mutex_);
  std::vector<Place> places_ GUARDED_BY(mutex_);
  Random random_ GUARDED_BY(mutex_);
  Instant retired_last_ GUARDED_BY(mutex_){};
  std::vector<std::unique_ptr<pool::Endpoint>> endpoints_ GUARDED_BY(mutex_);  // all that were ever needed at once
  std::vector<pool::Endpoint*> spare_ GUARDED_BY(mutex_);                      // of those, the ones without an address
  Instant reviewed_ GUARDED_BY(mutex_){};                                      // the latest time that is known
  int family_ GUARDED_BY(mutex_) = 0;                                          // the preferred one
  // Connections and dials of the address that shares the requests and has the fewest.
  std::uint32_t least_ GUARDED_BY(mutex_) = 0;
  std::atomic<std::uint32_t> failing_{0};  // places with failures; relaxed, no partner: a hint
  std::atomic<std::uint64_t> version_{0}, ejections_{0};
};

}  // namespace carpool::proxy::net
