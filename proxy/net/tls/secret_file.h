// Reads the private key of an authority. Included by this directory's .cc files only.
#pragma once

#include <string>

#include "base/result.h"
#include "proxy/net/tls/openssl.h"

namespace carpool::proxy::tls {

// Rejects a file that all users may read, or that users other than its owner may write. The group may read it:
// Kubernetes gives a mounted secret to the group of the pod. Wipes the bytes that it read. Blocking.
Result<KeyPtr> read_secret_key(const std::string& path);

}  // namespace carpool::proxy::tls
