// Sends one request to an instance's admin endpoint, over TCP or its Unix socket; blocking, with a timeout on every
// wait.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace carpool::proxy::cli {

struct Reply {
  int status = 0;
  std::string body;
};

// The address and the credentials of an instance.
struct Instance {
  std::string address;  // in the form of [admin] address
  std::string token;    // empty: none
  int timeout_seconds = 10;
};

// Returns a Fault if the instance does not respond.
Result<Reply> ask(const Instance& instance, std::string_view method, std::string_view target);

}  // namespace carpool::proxy::cli
