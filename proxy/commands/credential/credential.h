// `carpool credential SCHEME NAME`: reads a secret and prints its line for a credentials_file.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <variant>

#include "proxy/config/credential.h"

namespace carpool::proxy {

struct CredentialOptions {
  bool help = false;
  config::CredentialScheme scheme = config::CredentialScheme::basic;
  std::string name;
};

// Returns nothing if the first word is not `credential`; otherwise the options or an error text.
std::optional<std::variant<CredentialOptions, std::string>> parse_credential(int argc, const char* const* argv);

// `input`: a descriptor with the secret, which may end in a line break. Returns the exit code: 0 done, 1 no usable
// secret.
int run_credential(const CredentialOptions& options, int input, std::ostream& out, std::ostream& err);

}  // namespace carpool::proxy
