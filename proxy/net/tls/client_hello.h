// ClientHello: the content of a TLS client's first message, read before a server is chosen for it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace carpool::proxy::tls {

struct ClientHello {
  std::string server_name;        // SNI, as sent; empty: none
  bool offers_protocols = false;  // it has ALPN
  bool offers_h1 = false, offers_h2 = false;
  bool offers_tls13 = false;
  // False if it offers no version, no cipher suite, no signature or no group that carpool's TLS has with a certificate
  // for a P-256 key, so that a handshake would fail.
  bool suits_p256 = false;
  // A digest of its cipher suites without those of RFC 8701, which are random. It differs between libraries.
  std::uint64_t suites = 0;
};

enum class HelloState : std::uint8_t {
  incomplete,  // more bytes are needed
  not_tls,     // no ClientHello, or a malformed one
  complete,
};

// `bytes`: the bytes that the client has sent so far. Reads nothing beyond them, and keeps nothing. Throws
// std::bad_alloc.
HelloState read_hello(std::span<const char> bytes, ClientHello& hello);

}  // namespace carpool::proxy::tls
