// The exit codes of the program. The subcommands that query an instance have their own: proxy/commands/cli/cli.h.
#pragma once

namespace carpool::proxy {

inline constexpr int kExitClean = 0;
inline constexpr int kExitConfiguration = 1;  // also a usage error, or a file that cannot be used
inline constexpr int kExitCannotListen = 2;
inline constexpr int kExitInternal = 3;

}  // namespace carpool::proxy
