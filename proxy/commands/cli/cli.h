// The command line's subcommands: questions to a running instance, and orders.
#pragma once

#include <iosfwd>
#include <optional>

namespace carpool::proxy::cli {

// Nothing: there is no subcommand, the program itself is meant. Else the exit code: 0 done, 1 wrong use or
// configuration, 2 no answer, 3 the instance refused.
std::optional<int> run(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

}  // namespace carpool::proxy::cli
