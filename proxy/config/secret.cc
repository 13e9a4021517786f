#include "proxy/config/secret.h"

#include <string.h>  // NOLINT(modernize-deprecated-headers): explicit_bzero

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/contents.h"
#include "base/open_to_read.h"

namespace carpool::proxy::config {
namespace {

Fault failed(const Secret& secret, const std::string& why) {
  return {FaultKind::internal, Side::self, secret.file + ' ' + why};
}

}  // namespace

void wipe(std::string& value) {
  ::explicit_bzero(value.data(), value.size());
  value.clear();
}

Result<std::string> value_of(const Secret& secret) {
  if (secret.file.empty()) {
    if (secret.text.size() > kMaxSecretLength) {
      return Fault{FaultKind::internal, Side::self, "is longer than " + std::to_string(kMaxSecretLength) + " bytes"};
    }
    return secret.text;
  }
  const Result<Fd> file = open_to_read(secret.file);
  if (!file) return failed(secret, "cannot be read: " + file.fault().detail);
  std::string value(kMaxSecretLength + 1, '\0');  // does not grow, so that no copy stays behind
  const std::optional<std::size_t> size = read_into(file->get(), value);
  if (!size) return failed(secret, "cannot be read: " + std::generic_category().message(errno));
  value.resize(*size);
  if (value.size() > kMaxSecretLength - std::min(kMaxSecretLength, secret.prefix.size())) {
    wipe(value);
    return failed(secret, "is longer than " + std::to_string(kMaxSecretLength) + " bytes");
  }
  const std::size_t end = value.find_last_not_of(" \t\r\n");
  value.resize(end == std::string::npos ? 0 : end + 1);
  if (value.empty()) return failed(secret, "is empty");
  value.insert(0, secret.prefix);  // fits into the reserved memory
  return value;
}

}  // namespace carpool::proxy::config
