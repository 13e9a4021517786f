// Events: what look-ups meet that is worth a count, and perhaps a line in the log.
#pragma once

#include <cstdint>
#include <string_view>

#include "exec/role.h"
#include "metrics/registry.h"

namespace carpool::proxy::dns {

class Events {
 public:
  // `host` is empty where no name is meant.
  virtual void on_dns_event(metrics::Dns what, std::uint64_t n, std::string_view host) LOOP_ONLY = 0;

 protected:
  ~Events() = default;
};

}  // namespace carpool::proxy::dns
