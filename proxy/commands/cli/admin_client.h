// One request to an instance's admin endpoint, over TCP or its Unix socket; blocking, with a bound on every wait.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace carpool::proxy::cli {

struct Reply {
  int status = 0;
  std::string body;
};

// Where an instance is, and what it wants to see.
struct Instance {
  std::string address;  // as [admin] address
  std::string token;    // empty: none
  int patience_seconds = 10;
};

// Fault: nobody answers there.
Result<Reply> ask(const Instance& instance, std::string_view method, std::string_view target);

}  // namespace carpool::proxy::cli
