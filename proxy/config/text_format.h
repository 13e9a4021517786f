// TextFormat: the format of a text setting. It also makes the text canonical, so that texts with the same meaning are
// equal values.
#pragma once

#include <string>
#include <string_view>

namespace carpool::proxy::config {

struct TextFormat {
  std::string_view expected;                 // completes "expected …"
  std::string (*accept)(std::string& text);  // makes it canonical; returns an error text, or empty
  bool of_machine = false;                   // accept() checks files or groups of this machine
  bool path = false;    // of a file or folder; a relative one is resolved against the configuration's folder
  bool target = false;  // its query may hold a secret, which is masked wherever the value is shown
};

extern const TextFormat kListenAddress;  // IP:PORT, port 0 allowed, or unix:/path
extern const TextFormat kUnixAddress;    // unix:/path
extern const TextFormat kPinnedAddress;  // IP:PORT or unix:/path
extern const TextFormat kOriginUri;      // any scheme
extern const TextFormat kHttpOrigin;     // http or https
extern const TextFormat kProxyUrl;       // http://host:port
extern const TextFormat kHostName;       // a host without port
extern const TextFormat kEgressPattern;
extern const TextFormat kNetwork;  // an address or a network
extern const TextFormat kReadableFile;
extern const TextFormat kWritableFile;  // it need not exist
extern const TextFormat kFolder;
extern const TextFormat kProtocol;
extern const TextFormat kLeniency;
extern const TextFormat kRetryCondition;  // a word, or a status
extern const TextFormat kClassName;
extern const TextFormat kFileMode;           // four octal digits
extern const TextFormat kGroup;              // of the system, by name or number
extern const TextFormat kRequestRule;        // METHOD /path, METHOD /prefix*
extern const TextFormat kTokenUrl;           // https://host/path
extern const TextFormat kOtlpEndpoint;       // http://host:port or https://host, with or without a path
extern const TextFormat kResourceAttribute;  // key=value
extern const TextFormat kVisibleText;        // of ASCII
extern const TextFormat kProbe;              // METHOD TARGET

// The argument must be an address that kListenAddress accepted.
bool unix_address(std::string_view address);
bool loopback_address(std::string_view address);
bool any_port(std::string_view address);

}  // namespace carpool::proxy::config
