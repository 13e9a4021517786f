// forbid_dumps(): for a process that has read a secret.
#pragma once

namespace carpool {

// From now on the process writes no core dump, and a debugger of its user cannot attach: both would reveal the secret.
void forbid_dumps();

}  // namespace carpool
