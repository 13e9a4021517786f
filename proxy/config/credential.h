// The credentials of a listener's clients, as a credentials_file lists them: a line for each, `basic NAME SHA256` or
// `bearer NAME SHA256`, with the SHA-256 of the password or token. Empty lines and lines that begin with # are skipped.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace carpool::proxy::config {

enum class CredentialScheme : std::uint8_t { basic, bearer };  // RFC 7617, RFC 6750
using SecretDigest = std::array<std::uint8_t, 32>;

struct Credential {
  CredentialScheme scheme = CredentialScheme::basic;
  std::string name;  // of a user; of a token: for the log
  SecretDigest digest{};
  friend bool operator==(const Credential&, const Credential&) = default;
};

inline constexpr std::size_t kMaxCredentialBytes = std::size_t{64} * 1024;  // of a file
inline constexpr std::size_t kMaxCredentialLines = 1000;
inline constexpr std::size_t kMaxCredentialName = 128;

struct CredentialList {
  std::vector<Credential> credentials;
  std::vector<std::string> errors;  // "PATH:LINE: what is wrong, what is expected", without the content of the line
};

// A name may occur several times, so that an old and a new secret are valid together.
CredentialList parse_credentials(std::string_view text, const std::string& path);
CredentialList read_credentials(const std::string& path);  // blocking

// Returns true for printable ASCII without spaces and without the colon that ends the name in Basic.
bool credential_name_fits(std::string_view name);

}  // namespace carpool::proxy::config
