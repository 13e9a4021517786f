// AddressSet: the addresses of one origin, and what is known of each: how many connections lead there, whether
// requests to it fail. It says in which order a dial tries them (of two drawn at random the one with fewer connections
// goes first: Mitzenmacher's power of two choices), leaves out those that only fail (passive outlier ejection, as
// Envoy's), and says which connections lead to an address that its name no longer has.
//
// Shared by all loops behind one mutex: touched by dials, ends of connections and failures. A request that goes well
// reads one number.
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
  std::uint32_t eject_after = 5;                           // failures in a row; 0: never
  Duration eject_time = std::chrono::seconds(10);          // the first time; the next ones longer
  Duration gone_after = std::chrono::seconds(30);          // in no answer for so long
  Duration retire_every = std::chrono::milliseconds(100);  // one connection to an address that is gone
};

class AddressSet {
 public:
  static constexpr Duration kEjectAtMost = std::chrono::minutes(5);
  static constexpr std::size_t kMost = 64;

  void follow(const AddressRules& rules);

  // What the name has now. Some name servers tell only a part, another each time: an address is gone when it was not
  // among them for gone_after. Returns whether some are gone that were not before, or came back.
  bool learn(const std::vector<Address>& addresses, Instant now);
  // For a dial, at most kMost: ejected ones go last (all of them ejected: none is). Counts the first as being dialed
  // until dial_ended().
  std::vector<Address> order(std::vector<Address> addresses, Instant now);
  void dial_ended(const Address& first);

  void opened(const Address& address);
  void closed(const Address& address);
  // A dial to it, or an exchange on a connection to it, failed, or went well.
  void failed(const Address& address, Instant now);
  void answered(const Address& address) {
    if (in_trouble_.load(std::memory_order_relaxed) != 0) forgive(address);
  }

  bool in_use() const;                   // some connection leads to one of them
  bool anyone_to_go(Instant now) const;  // some connection leads to one that is gone or ejected
  std::uint64_t ejections() const { return ejections_.load(std::memory_order_relaxed); }  // so far
  // Changes whenever a connection may be one to retire. Relaxed: who sees it late asks late.
  std::uint64_t version() const { return version_.load(std::memory_order_relaxed); }
  enum class Verdict : std::uint8_t { keep, keep_for_now, gone, ejected };
  // keep_for_now: it should go, but not yet: connections to addresses that are gone close one by one, so that an origin
  // that moves is not dialed anew for all of them at once.
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
    std::uint32_t failures = 0;   // in a row
    std::uint32_t ejections = 0;  // so far
    std::uint32_t relapses = 0;   // of them, those that came soon after the one before
    Instant ejected_until{};
    bool named = true;   // the name still has it,
    Instant named_at{};  // or had it then
    bool ejected(Instant now) const { return ejected_until > now; }
    bool needed() const { return named || open != 0 || dialing != 0; }
  };
  Place& at(const Address& address);
  Place* find(const Address& address);
  void drop_unneeded();
  void forgive(const Address& address);
  void eject(Place& place, Instant now);

  mutable std::mutex mutex_;  // guards all below but the atomics
  AddressRules rules_;
  std::vector<Place> places_;
  Random random_;
  Instant retired_last_{};
  std::atomic<std::uint32_t> in_trouble_{0};  // places with failures; relaxed, no partner: a hint
  std::atomic<std::uint64_t> version_{0}, ejections_{0};
};

}  // namespace carpool::proxy::net
