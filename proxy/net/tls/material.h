// Material: the bytes that a client context is made of. Each file is read once; what is loaded into OpenSSL and what is
// hashed are the same bytes, whatever happens to the files meanwhile. Included by this directory's .cc files only.
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
  ~Material();  // leaves no key in freed memory

  // PEM. ca_file, or the system's bundle and every certificate of the system's directory that the bundle lacks; none
  // without verification.
  std::vector<std::string> authorities;
  std::string certificate, key;  // PEM; empty: no client certificate
};

// Blocking. Faults name the setting, the file and the reason.
Result<Material> read_material(const ClientSettings& settings);
// Equal for equal settings and equal bytes, in every process; never 0. A part of a SHA-256.
std::uint64_t likeness_of(const ClientSettings& settings, const Material& material);
Status use_material(SSL_CTX* context, const ClientSettings& settings, const Material& material);

}  // namespace carpool::proxy::tls
