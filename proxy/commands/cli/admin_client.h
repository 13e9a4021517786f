// Sends one request to an instance's admin endpoint, over TCP or its Unix socket, in plain text or over TLS. Blocks,
// with a timeout on every wait.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "proxy/commands/cli/admin_stream.h"

namespace carpool::proxy::cli {

struct Reply {
  int status = 0;
  std::string body;
};

// Instance: the address and the credentials of an instance.
struct Instance {
  std::string address;  // in the form of [admin] address
  std::string token;    // empty if none
  int timeout_seconds = 10;
  std::optional<Trust> trust{};  // nothing for plain text
  // For the response to a command that the instance executes first; 0: timeout_seconds.
  int response_seconds = 0;
  std::string named_by{};  // the configuration file with the address; empty if there was none
};

// Returns a Fault if the instance does not respond.
Result<Reply> ask(const Instance& instance, std::string_view method, std::string_view target);

}  // namespace carpool::proxy::cli
