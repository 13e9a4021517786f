// AddressSet: the addresses of one origin, with the number of connections to each and whether requests to it fail. It
// orders the addresses for a dial (of two random candidates the one with fewer connections goes first: Mitzenmacher's
// power of two choices), skips addresses that keep failing (passive outlier ejection, as in Envoy), and identifies
// connections to an address that the name no longer resolves to.
//
// Shared by all loops behind one mutex, which dials, connection ends and failures take. A successful request only reads
// one atomic.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "proxy/net/address.h"

namespace carpool::proxy::net {

// [pool.addresses]
struct AddressRules {
  std::uint32_t eject_after = 5;                   // consecutive failures; 0: never
  Duration eject_time = std::chrono::seconds(10);  // the first ejection; later ones are longer
  Duration gone_after = std::chrono::seconds(30);  // missing in all DNS responses for this long
  // interval between closing two connections to addresses that are gone
  Duration retire_every = std::chrono::milliseconds(100);
};

class AddressSet {
 public:
  static constexpr Duration kEjectAtMost = std::chrono::minutes(5);
  static constexpr std::size_t kMost = 64;

  void follow(const AddressRules& rules);

  // Takes the addresses that the name has now. Some name servers return a varying subset: an address is gone once it
  // has been missing for gone_after. Returns true if addresses went or came back.
  bool learn(const std::vector<Address>& addresses, Instant now);
  // Returns at most kMost addresses for a dial, ejected ones last (if all are ejected, none counts as ejected). Counts
  // the first as being dialed until dial_ended().
  std::vector<Address> order(std::vector<Address> addresses, Instant now);
  void dial_ended(const Address& first);

  void opened(const Address& address);
  void closed(const Address& address);
  // Reports that a dial to the address, or an exchange on a connection to it, failed or succeeded.
  void failed(const Address& address, Instant now);
  void answered(const Address& address) {
    if (in_trouble_.load(std::memory_order_relaxed) != 0) forgive(address);
  }

  bool in_use() const;                   // returns true if any address has a connection
  bool anyone_to_go(Instant now) const;  // returns true if an address that is gone or ejected has a connection
  std::uint64_t ejections() const { return ejections_.load(std::memory_order_relaxed); }  // total
  // Changes whenever a connection may have to be retired. Relaxed: a thread that sees it late checks late.
  std::uint64_t version() const { return version_.load(std::memory_order_relaxed); }
  enum class Verdict : std::uint8_t { keep, keep_for_now, gone, ejected };
  // keep_for_now: to be closed later. Connections to addresses that are gone close one by one, so that an origin that
  // moves is not redialed for all of them at once.
  Verdict judge(const Address& address, Instant now);

  struct Facts {
    std::string address;
    std::uint32_t open = 0, failures = 0, ejections = 0;
    bool ejected = false, gone = false;
  };
  std::vector<Facts> all(Instant now) const;
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
    std::uint32_t relapses = 0;   // consecutive ejections, each soon after the previous one
    Instant ejected_until{};
    bool named = true;   // the name resolves to it now,
    Instant named_at{};  // or did at this time
    bool ejected(Instant now) const { return ejected_until > now; }
    bool needed() const { return named || open != 0 || dialing != 0; }
  };
  Place& at(const Address& address);
  Place* find(const Address& address);
  void drop_unneeded();
  void forgive(const Address& address);
  void eject(Place& place, Instant now);

  mutable std::mutex mutex_;  // guards everything below except the atomics
  AddressRules rules_;
  std::vector<Place> places_;
  Random random_;
  Instant retired_last_{};
  std::atomic<std::uint32_t> in_trouble_{0};  // number of places with failures; relaxed, no partner: a hint
  std::atomic<std::uint64_t> version_{0}, ejections_{0};
};

}  // namespace carpool::proxy::net
