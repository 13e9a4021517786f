// ClientCredentials: the credentials that a listener accepts. Immutable; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/config/credential.h"
#include "proxy/http/proxy_authorization.h"

namespace carpool::proxy {

class ClientCredentials {
 public:
  explicit ClientCredentials(std::vector<config::Credential> listed);

  // Returns the name of the credential, or nullptr if none matches. Computes one SHA-256 and at most one comparison per
  // credential, in a time that does not depend on where a secret differs. Allocates nothing.
  const std::string* user_of(const http::ProxyAuthorization& given) const;
  // Returns the Proxy-Authenticate lines for the schemes that occur, each with its CRLF; a constant of the program.
  std::string_view challenge() const { return challenge_; }

  friend bool operator==(const ClientCredentials& a, const ClientCredentials& b) { return a.listed_ == b.listed_; }

 private:
  std::vector<config::Credential> listed_;
  std::string_view challenge_;
};

}  // namespace carpool::proxy
