// The subcommands of the command line: queries and commands to a running instance.
#pragma once

#include <iosfwd>
#include <optional>

namespace carpool::proxy::cli {

// Returns nothing if there is no subcommand: the proxy itself is to run. Otherwise returns the exit code: 0 done, 1
// wrong use or configuration, 2 no response, 3 the instance refused.
std::optional<int> run(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

}  // namespace carpool::proxy::cli
