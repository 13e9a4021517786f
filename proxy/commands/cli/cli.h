// The subcommands of the command line, which query and control a running instance.
#pragma once

#include <iosfwd>
#include <optional>

namespace carpool::proxy::cli {

// Returns nothing if there is no subcommand, so that the proxy itself must run. Otherwise returns the exit code: 0
// done, 1 usage or configuration error, 2 no response, 3 refused by the instance.
std::optional<int> run(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

}  // namespace carpool::proxy::cli
