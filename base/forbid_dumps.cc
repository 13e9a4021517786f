#include "base/forbid_dumps.h"

#include <sys/prctl.h>
#include <sys/resource.h>

namespace carpool {

// Both calls are needed: the limit does not apply to a program that receives dumps from the kernel.
void forbid_dumps() {
  const rlimit none{0, 0};
  static_cast<void>(::setrlimit(RLIMIT_CORE, &none));
  static_cast<void>(::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
}

}  // namespace carpool
