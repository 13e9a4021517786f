#include "proxy/net/tls/authority_files.h"

#include <openssl/crypto.h>

#include "proxy/net/tls/certificate.h"
#include "proxy/net/tls/whole_file.h"

namespace carpool::proxy::tls {
namespace {

constexpr mode_t kOwnerOnly = 0600;
constexpr mode_t kEverybodyReads = 0644;

}  // namespace

Status create_authority(const std::string& dir, const std::vector<std::string>& hosts, std::chrono::seconds life) {
  ERR_clear_error();
  const Certified made = make_authority(hosts, life);
  if (!made.certificate) {
    return Fault{FaultKind::tls_protocol, Side::self,
                 dir + ": no authority was created: " + std::string(take_reason())};
  }
  std::string key = pem_of(made.key.get());
  Status written = replace_file(dir + "/ca.key", key, kOwnerOnly);
  OPENSSL_cleanse(key.data(), key.size());
  if (!written) return written;
  return replace_file(dir + "/ca.pem", pem_of(made.certificate.get()), kEverybodyReads);
}

}  // namespace carpool::proxy::tls
