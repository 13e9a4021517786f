// Form: what a text setting must look like beyond being a text. It also makes it canonical, so that equal meanings are
// equal values.
#pragma once

#include <string>
#include <string_view>

namespace carpool::proxy::config {

struct Form {
  std::string_view expected;                 // completes "expected …"
  std::string (*accept)(std::string& text);  // makes it canonical; what is wrong, or empty
};

extern const Form kListenAddress;  // IP:PORT, port 0 allowed, or unix:/path
extern const Form kUnixAddress;    // unix:/path
extern const Form kPinnedAddress;  // IP:PORT
extern const Form kOriginUri;      // any scheme
extern const Form kHttpOrigin;     // http or https
extern const Form kHostName;       // a host without port
extern const Form kEgressPattern;
extern const Form kReadableFile;
extern const Form kProtocol;
extern const Form kLeniency;
extern const Form kClassName;
extern const Form kProbe;  // METHOD TARGET

// Of an address that kListenAddress accepted.
bool unix_address(std::string_view address);
bool loopback_address(std::string_view address);
bool any_port(std::string_view address);

}  // namespace carpool::proxy::config
