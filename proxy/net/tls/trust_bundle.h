// Writes the authorities that applications trust: the system's and that of a folder.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace carpool::proxy::tls {

struct Bundle {
  std::size_t system = 0;  // authorities of the system in it
};

// Writes `bundle.pem` and, for Java, `bundle.p12` (PKCS#12, password "changeit") into `into`, from the system's
// authorities and `ca.pem` of `dir`; the key is not read. If `into` is another folder, `ca.pem` is copied into it too.
// Authorities that an earlier `carpool ca` made and that are among the system's are left out. Faults contain the file
// and the reason. Blocking.
Result<Bundle> write_trust_bundle(const std::string& dir, const std::string& into);

}  // namespace carpool::proxy::tls
