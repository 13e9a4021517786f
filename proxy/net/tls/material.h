// Material: the bytes that a client context is built from. Each file is read once, so that the bytes loaded into
// OpenSSL are the bytes that are hashed, even if the files change meanwhile. Included by this directory's .cc files
// only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "proxy/net/tls/client_context.h"
#include "proxy/net/tls/openssl.h"

namespace carpool::proxy::tls {

struct Material {
  Material() = default;
  Material(Material&&) = default;
  Material& operator=(Material&&) = default;
  ~Material();  // wipes the key

  // PEM: ca_file, or the system's bundle and every certificate of the system's directory that the bundle lacks; empty
  // without verification.
  std::vector<std::string> authorities;
  std::string certificate, key;  // PEM; empty: no client certificate
};

// Blocking. Faults contain the setting, the file and the reason.
Result<Material> read_material(const ClientSettings& settings);
// Returns a hash that is equal for equal settings and bytes in every process; never 0. Truncated SHA-256.
std::uint64_t fingerprint_of(const ClientSettings& settings, const Material& material);
Status use_material(SSL_CTX* context, const ClientSettings& settings, const Material& material);

}  // namespace carpool::proxy::tls
