// forbid_dumps(): for a process that has read a secret.
#pragma once

namespace carpool {

// A dump of this process would hold the secret, and so would a debugger's view: from now on there is neither.
void forbid_dumps();

}  // namespace carpool
