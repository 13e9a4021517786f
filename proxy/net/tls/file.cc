#include "proxy/net/tls/file.h"

#include "base/contents.h"

namespace carpool::proxy::tls {

Result<std::string> read_file(const std::string& path) {
  Result<std::string> bytes = carpool::contents(path, kMaxFile);
  if (bytes) return bytes;
  const FaultKind kind = bytes.fault().kind;
  const std::string why = kind == FaultKind::body_too_large ? "is larger than 16 MiB" : bytes.fault().detail;
  return Fault{kind == FaultKind::budget ? kind : FaultKind::tls_protocol, Side::self, path + ": " + why};
}

}  // namespace carpool::proxy::tls
