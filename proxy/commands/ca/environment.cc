#include "proxy/commands/ca/environment.h"

#include <array>

namespace carpool::proxy {
namespace {

struct Variable {
  std::string_view name, before, file, after;
  bool list = false;  // the value is a list of options, and a shell keeps those that the environment already has
};

constexpr std::array<Variable, 8> kVariables{{
    {"SSL_CERT_FILE", "", kBundleFile, ""},       // OpenSSL, Go, Python's ssl and httpx, Ruby, PHP's streams
    {"CURL_CA_BUNDLE", "", kBundleFile, ""},      // curl
    {"REQUESTS_CA_BUNDLE", "", kBundleFile, ""},  // Python's requests
    {"AWS_CA_BUNDLE", "", kBundleFile, ""},       // the SDKs and the command line of AWS
    {"GIT_SSL_CAINFO", "", kBundleFile, ""},
    {"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "", kBundleFile, ""},
    {"NODE_EXTRA_CA_CERTS", "", kAuthorityFile, ""},  // added to Node's own
    {"JAVA_TOOL_OPTIONS", "-Djavax.net.ssl.trustStore=", kJavaBundleFile,
     " -Djavax.net.ssl.trustStoreType=PKCS12 -Djavax.net.ssl.trustStorePassword=changeit", true},
}};

std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// Java separates options by white space, except inside quotes, which may begin and end anywhere in an option. It knows
// no other way to escape: a quote that is part of the path is in quotes of the other kind.
std::string option_of(std::string_view name, const std::string& path) {
  std::string option(name);
  if (path.find_first_of(" \t\v\f\r\"'") == std::string::npos) return option.append(path);
  const char quote = path.find('"') == std::string::npos ? '"' : '\'', other = quote == '"' ? '\'' : '"';
  option.push_back(quote);
  for (const char c : path) {
    if (c == quote) {
      option.append({quote, other, c, other, quote});
    } else {
      option.push_back(c);
    }
  }
  option.push_back(quote);
  return option;
}

std::string command_of(const Variable& variable, const std::string& value) {
  std::string out = std::string("export ").append(variable.name).append("=");
  if (variable.list) out.append("\"${").append(variable.name).append(":+$").append(variable.name).append(" }\"");
  return out.append(shell_quoted(value));
}

}  // namespace

std::string environment_of(const std::string& dir, bool plain) {
  std::string out;
  for (const Variable& variable : kVariables) {
    const std::string path = std::string(dir).append(variable.file);
    const std::string value = variable.before.empty() ? path : option_of(variable.before, path).append(variable.after);
    out.append(plain ? std::string(variable.name).append("=").append(value) : command_of(variable, value)).append("\n");
  }
  return out;
}

}  // namespace carpool::proxy
