// Owning handles for OpenSSL objects, and its errors as text. Included by this directory's .cc files only.
#pragma once

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fault.h"
#include "base/result.h"

namespace carpool::proxy::tls {

template <auto Free>
struct FreeWith {
  template <class T>
  void operator()(T* handle) const {
    Free(handle);
  }
};
using SslCtxPtr = std::unique_ptr<SSL_CTX, FreeWith<SSL_CTX_free>>;
using SessionPtr = std::unique_ptr<SSL_SESSION, FreeWith<SSL_SESSION_free>>;
using CertPtr = std::unique_ptr<X509, FreeWith<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY_free>>;
using BioPtr = std::unique_ptr<BIO, FreeWith<BIO_free_all>>;

// Returns the reason of the oldest error in this thread's queue and empties the queue. Static text.
std::string_view take_reason();
// Empties the queue and returns true if one of its errors is that OpenSSL had no memory.
bool take_out_of_memory_errors();
// Returns a Fault with `what` and take_reason(). Its kind is `budget` if OpenSSL had no memory, because that may pass.
Fault take_setting_fault(const std::string& what);
// Encodes ["h2", "http/1.1"] for ALPN: each name preceded by its length.
std::string alpn_wire(const std::vector<std::string>& protocols);
// Returns the protocol version of "1.2" or "1.3"; 0 for anything else.
int version_number(std::string_view version);
// Options for both roles: buffers released when idle, read-ahead, partial writes, no renegotiation.
void apply_tls_defaults(SSL_CTX* context);
// Replaces OpenSSL's callback for the passphrase of a key, which prompts on the terminal.
int no_passphrase(char* buffer, int size, int writing, void* user);

}  // namespace carpool::proxy::tls
