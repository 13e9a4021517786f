// ListenPoint: what a request's way depends on of the listener that accepted its client: the settings in force, and
// the address that it is bound to. Outlives every client.
#pragma once

#include <atomic>

#include "proxy/config/config.h"
#include "proxy/net/address.h"

namespace carpool::proxy {

class ListenPoint {
 public:
  const config::Listen& settings() const { return *settings_.load(std::memory_order_acquire); }
  const net::Address& address() const { return address_; }  // with the real port

  // `settings` lives as long as this. Release: pairs with settings().
  void set(const config::Listen& settings) { settings_.store(&settings, std::memory_order_release); }
  void bind(const net::Address& address) { address_ = address; }  // before the first client

 private:
  std::atomic<const config::Listen*> settings_{nullptr};
  net::Address address_;
};

}  // namespace carpool::proxy
