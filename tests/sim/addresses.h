// FakeAddresses: the addresses of one destination's origin, as the proxy's AddressSet keeps them: each connection goes
// to the address with the fewest, and the pool learns how even they are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "pool/destination/destination.h"
#include "pool/policy/endpoint.h"

namespace carpool::test {

class FakeAddresses {
 public:
  // The name resolves to `count` addresses: the first of those that existed at the start.
  void have(pool::Destination& destination, std::size_t count, Duration slow_start = {}) {
    destination_ = &destination;
    slow_start_ = slow_start;
    named_ = count;
    while (all_.size() < count) all_.push_back(std::make_unique<One>());
    publish();
  }
  bool serve(const pool::Destination& destination) const { return destination_ == &destination; }
  std::size_t count() const { return named_; }
  pool::Endpoint& at(std::size_t n) { return all_[n]->endpoint; }
  std::uint32_t open(std::size_t n) const { return all_[n]->open; }

  // A new connection goes to the address that has the fewest.
  pool::Endpoint* reach() {
    One* least = nullptr;
    for (std::size_t n = 0; n < named_; ++n) {
      if (least == nullptr || all_[n]->open < least->open) least = all_[n].get();
    }
    ++least->open;
    publish();
    return &least->endpoint;
  }
  void left(const pool::Endpoint* address) {
    for (const auto& one : all_) one->open -= &one->endpoint == address ? 1 : 0;
    publish();
  }
  bool is_gone(const pool::Endpoint* address) const {
    for (std::size_t n = 0; n < named_; ++n) {
      if (&all_[n]->endpoint == address) return false;
    }
    return true;
  }
  bool needs_connection_of(const pool::Endpoint* address) {
    return destination_->endpoints().needs_rebalance() && !is_gone(address) && open_to(address) >= least() + 2;
  }
  std::uint64_t leases() const {
    std::uint64_t sum = 0;
    for (const auto& one : all_) sum += one->endpoint.leases();
    return sum;
  }

 private:
  struct One {
    pool::Endpoint endpoint;
    std::uint32_t open = 0;
  };
  std::uint32_t open_to(const pool::Endpoint* address) const {
    for (const auto& one : all_) {
      if (&one->endpoint == address) return one->open;
    }
    return 0;
  }
  std::uint32_t least() const {
    std::uint32_t least = UINT32_MAX;
    for (std::size_t n = 0; n < named_; ++n) least = std::min(least, all_[n]->open);
    return least;
  }
  void publish() {
    using Balance = pool::Endpoints::Balance;
    std::uint32_t most = 0;
    std::vector<pool::Endpoint*> reachable;
    for (std::size_t n = 0; n < named_; ++n) {
      most = std::max(most, all_[n]->open);
      if (all_[n]->open != 0) reachable.push_back(&all_[n]->endpoint);
    }
    destination_->endpoints().reach(reachable);
    const Balance balance = most >= least() + 2 ? Balance::uneven : least() == 0 ? Balance::lacking : Balance::even;
    destination_->endpoints().set(static_cast<std::uint32_t>(named_), balance, slow_start_);
  }

  pool::Destination* destination_ = nullptr;
  Duration slow_start_{};
  std::size_t named_ = 0;
  std::vector<std::unique_ptr<One>> all_;
};

}  // namespace carpool::test
