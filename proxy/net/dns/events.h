// Events: DNS events that are counted and may be logged.
#pragma once

#include <cstdint>
#include <string_view>

#include "exec/role.h"
#include "metrics/registry.h"

namespace carpool::proxy::dns {

class Events {
 public:
  // `host` is empty if no name is concerned.
  virtual void on_dns_event(metrics::Dns what, std::uint64_t n, std::string_view host) LOOP_ONLY = 0;

 protected:
  ~Events() = default;
};

}  // namespace carpool::proxy::dns
