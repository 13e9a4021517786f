#include "proxy/commands/ca/environment.h"

#include <array>
#include <string_view>

namespace carpool::proxy {
namespace {

struct Variable {
  std::string_view name, before, file, after;
};

constexpr std::array<Variable, 8> kVariables{{
    {"SSL_CERT_FILE", "", "/bundle.pem", ""},       // OpenSSL, Go, Python's ssl and httpx, Ruby, PHP's streams
    {"CURL_CA_BUNDLE", "", "/bundle.pem", ""},      // curl
    {"REQUESTS_CA_BUNDLE", "", "/bundle.pem", ""},  // Python's requests
    {"AWS_CA_BUNDLE", "", "/bundle.pem", ""},       // the SDKs and the command line of AWS
    {"GIT_SSL_CAINFO", "", "/bundle.pem", ""},
    {"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "", "/bundle.pem", ""},
    {"NODE_EXTRA_CA_CERTS", "", "/ca.pem", ""},  // added to Node's own
    {"JAVA_TOOL_OPTIONS", "-Djavax.net.ssl.trustStore=", "/bundle.p12",
     " -Djavax.net.ssl.trustStoreType=PKCS12 -Djavax.net.ssl.trustStorePassword=changeit"},
}};

std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

std::string environment_of(const std::string& dir, bool plain) {
  std::string out;
  for (const Variable& variable : kVariables) {
    const std::string value = std::string(variable.before).append(dir).append(variable.file).append(variable.after);
    out.append(plain ? "" : "export ").append(variable.name).append("=").append(plain ? value : shell_quoted(value));
    out += '\n';
  }
  return out;
}

}  // namespace carpool::proxy
