// Reads a TOML file or text into a Config, or reports all its errors at once. Wraps toml++.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/config/config_error.h"
#include "proxy/config/env.h"

namespace carpool::proxy::config {

// ReadingLimit: limits that reject a text, or cut its list of errors, independently of its settings.
enum class ReadingLimit : std::uint8_t {
  file,       // the file is longer than 16 MiB
  depth,      // tables and arrays are nested too deeply
  variables,  // a value is longer than 64 KiB after the expansion of its variables
  errors,     // there are more than the 100 that are reported
};
inline constexpr std::array<std::string_view, 4> kReadingLimits{"file", "depth", "variables", "mistakes"};

// An origin with intercept = true, for a check that needs files.
struct Intercepted {
  std::string host, label;
  ConfigError origin, authority;  // the places of origin.intercept and of intercept.ca_dir, without a text
};

// A credentials_file of a listener, the token_file of [admin], or a Unix socket that carpool will create, likewise.
struct NamedFile {
  std::string path;
  ConfigError place;  // without a text
};

// The certificate, its key and the authorities of a listener, of [admin] or of an [upstream.tls], likewise.
struct NamedCertificates {
  std::string cert_file, key_file, ca_file;  // ca_file: client_ca_file of a server
  bool server = false;
  bool verify = true;         // false: ca_file is not read
  ConfigError cert, key, ca;  // without a text
};

// A listener's fixed origin, likewise.
struct FixedOrigin {
  std::string origin;                  // its label
  std::vector<std::string> addresses;  // those that its [[origin]] pins
  ConfigError place;                   // without a text
};

struct Reading {
  Config config;  // valid only if `errors` is empty
  std::vector<ConfigError> errors;
  std::vector<ConfigError> warnings;
  std::vector<Intercepted> intercepted;
  std::vector<NamedFile> credentials;
  std::vector<NamedFile> tokens;
  std::vector<NamedFile> sockets;
  std::vector<NamedCertificates> certificates;
  std::vector<FixedOrigin> fixed;
  std::array<bool, kReadingLimits.size()> met{};  // indexed by ReadingLimit

  void mark_exceeded(ReadingLimit limit) { met[static_cast<std::size_t>(limit)] = true; }
  explicit operator bool() const { return errors.empty(); }
};

// Reads, resolves (per-origin overrides, "auto", TLS identities) and checks a configuration. If `digest` is not null,
// it receives the hash of exactly the bytes that were read (base/contents.h).
Reading read_file(const std::string& path, const Env& env, std::size_t* digest = nullptr);

// `another`: files, groups and variables without a default that the text names are not checked, because they exist
// where it is used.
enum class Machine : std::uint8_t { this_one, another };
Reading read_text(std::string_view toml, const std::string& file, const Env& env, Machine machine = Machine::this_one);

}  // namespace carpool::proxy::config
