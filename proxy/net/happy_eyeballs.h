// HappyEyeballs: connects over TCP by RFC 8305. Address families alternate; a new attempt starts every 250 ms or as
// soon as one fails; the first to connect wins and the others are closed at once. A Unix socket takes part like an
// address. If its accept queue is full, connect() fails at once and nothing announces room, so it is tried again.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "exec/loop.h"
#include "pool/origin.h"
#include "proxy/net/address.h"

namespace carpool::proxy::net {

class AddressPolicy;

struct Winner {
  Fd socket;  // connected, not watched
  Address peer, local;
};

class RaceOwner {
 public:
  // Called once, perhaps from inside start(). May destroy the HappyEyeballs object.
  virtual void on_race(Result<Winner> result) LOOP_ONLY = 0;
  // Called when an attempt was refused, was unreachable, or was overtaken by a later one.
  virtual void on_attempt_failed(const Address&) LOOP_ONLY {}

 protected:
  ~RaceOwner() = default;
};

// Starts with the family of the first address, then alternates (RFC 8305 §4); the order within a family is kept.
std::vector<Address> interleave(const std::vector<Address>& addresses);

class HappyEyeballs {
 public:
  // `policy` may be nullptr. `origin` and `policy` must outlive the race.
  HappyEyeballs(exec::Loop& loop, const pool::Origin& origin, const AddressPolicy* policy,
                const std::vector<Address>& addresses, RaceOwner& owner);
  ~HappyEyeballs();  // closes every attempt
  void start() LOOP_ONLY;
  // Takes addresses that became known after the start (RFC 8305 §3); those that take part already are no second time.
  void add(const std::vector<Address>& addresses) LOOP_ONLY;
  // Lists the addresses that have not responded yet, for diagnostics: "TCP connect to 10.0.0.1:80, 10.0.0.2:80".
  std::string pending() const;
  std::vector<Address> waiting_for() const;  // the same as addresses
  // Returns the Fault of an own address among those that were tried: it is the result unless another one connects.
  std::optional<Fault> own_address_fault() const;

 private:
  struct Attempt;

  void begin_next() LOOP_ONLY;
  bool begin(const Address& address) LOOP_ONLY;
  void try_full_queues_again() LOOP_ONLY;
  void on_delay();
  void on_attempt(Attempt& attempt, bool hangup) LOOP_ONLY;
  void note_failure(const Address& address, int error) LOOP_ONLY;
  void note_fault(Fault fault, int weight);
  void drop(Attempt& attempt) LOOP_ONLY;
  void finish() LOOP_ONLY;

  exec::Loop& loop_;
  const pool::Origin& origin_;
  const AddressPolicy* policy_;
  RaceOwner& owner_;
  std::vector<Address> addresses_;
  std::size_t next_ = 0;       // the first address that was not tried yet
  std::vector<Address> full_;  // Unix sockets whose accept queue had no room
  std::size_t how_many_;       // addresses
  Duration full_delay_;        // until `full_` is tried again
  Instant last_began_{};       // the last attempt
  std::vector<std::unique_ptr<Attempt>> attempts_;
  std::unique_ptr<Fault> worst_;  // the most informative failure
  int weight_ = 0;                // of worst_
  exec::Timer delay_;
};

}  // namespace carpool::proxy::net
