#include "proxy/net/tls/openssl.h"

#include "base/assert.h"

namespace carpool::proxy::tls {

namespace {
std::string_view text_of(unsigned long code) {
  if (code == 0) return "no reason given";
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? std::string_view(reason) : "unknown error";
}
}  // namespace

std::string_view take_reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  return text_of(code);
}

bool take_out_of_memory_errors() {
  bool lacked = false;
  while (const unsigned long code = ERR_get_error()) lacked |= ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE;
  return lacked;
}

Fault take_setting_fault(const std::string& what) {
  const unsigned long first = ERR_peek_error();
  const FaultKind kind = take_out_of_memory_errors() ? FaultKind::budget : FaultKind::tls_protocol;
  return {kind, Side::self, what + ": " + std::string(text_of(first))};
}

std::string alpn_wire(const std::vector<std::string>& protocols) {
  std::string wire;
  for (const std::string& protocol : protocols) {
    CARPOOL_ASSERT(!protocol.empty() && protocol.size() < 256);
    wire += static_cast<char>(protocol.size());
    wire += protocol;
  }
  return wire;
}

int version_number(std::string_view version) {
  if (version == "1.2") return TLS1_2_VERSION;
  if (version == "1.3") return TLS1_3_VERSION;
  return 0;
}

void apply_tls_defaults(SSL_CTX* context) {
  SSL_CTX_set_mode(context,
                   SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // A truncated stream must never look complete.
  SSL_CTX_clear_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_read_ahead(context, 1);  // reads a record's header and body in one recv
}

int no_passphrase(char*, int, int, void*) {
  return -1;
}

}  // namespace carpool::proxy::tls
