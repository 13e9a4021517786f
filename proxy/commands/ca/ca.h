// `carpool ca`: creates the certificate authority of intercepted origins and exports it.
#pragma once

#include <iosfwd>

#include "proxy/commands/ca/options.h"

namespace carpool::proxy {

// Returns the exit code: 0 done; 1 usage error, or a file that cannot be used or written.
int run_ca(const CaOptions& options, std::ostream& out, std::ostream& err);

}  // namespace carpool::proxy
