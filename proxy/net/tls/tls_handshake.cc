// TlsTransport, the handshake: its steps, and the Fault if it fails.
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "proxy/net/tls/handshake_state.h"
#include "proxy/net/tls/openssl.h"
#include "proxy/net/tls/tls_transport.h"

namespace carpool::proxy::tls {
namespace {

// Returns the alert by which the peer ended the handshake; 0: none. OpenSSL reports alert N as reason 1000 + N.
std::uint8_t alert_of(unsigned long error) {
  const int alert = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) - SSL_AD_REASON_OFFSET : 0;
  return alert > 0 && alert <= UINT8_MAX ? static_cast<std::uint8_t>(alert) : std::uint8_t{0};
}

bool refuses_certificate(std::uint8_t alert) {
  switch (alert) {
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
      return true;
    default:
      return false;
  }
}

Fault out_of_memory() {
  return {FaultKind::budget, Side::self, "out of memory"};  // short: needs none
}

}  // namespace

Fault rejected_handshake() {
  try {
    return {FaultKind::overloaded, Side::self, "too many blocking tasks (threads.max_tasks) for a TLS handshake"};
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

Result<bool> TlsTransport::handshake() {
  begin_call();
  return step_handshake();
}

Result<bool> TlsTransport::hello() {
  begin_call();
  fresh_in_ = readable_ = false;
  return step_handshake();
}

Result<bool> TlsTransport::step_handshake() {
  try {
    return failed_ ? handshake_fault(SSL_ERROR_SSL) : do_handshake();
  } catch (const std::bad_alloc&) {
    failed_ = true;
    return out_of_memory();
  }
}

Result<bool> TlsTransport::do_handshake() {
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) {
    established_ = true;
    handshake_.reset();
    pending_ = SSL_has_pending(ssl_.get()) == 1;  // a server may send data before the client's first request
    return true;
  }
  const int error = SSL_get_error(ssl_.get(), result);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return false;
  failed_ = true;
  return handshake_fault(error);
}

Fault TlsTransport::handshake_fault(int error) {
  alert_ = alert_of(ERR_peek_error());
  const bool closed = fin_ || error == SSL_ERROR_ZERO_RETURN;  // the latter: by a close_notify
  peer_left_ = closed || (error == SSL_ERROR_SYSCALL && wire_error_ != 0);
  const std::string& peer = handshake_ ? handshake_->name : peer_;
  const std::string what = "TLS handshake" + (peer.empty() ? peer : " with " + peer) + ": ";
  const auto reason = take_reason();
  if (handshake_ && !handshake_->refusal.empty()) {
    return {FaultKind::tls_certificate, Side::upstream, what + handshake_->refusal};
  }
  if (handshake_ && handshake_->too_long) {
    return {FaultKind::tls_protocol, Side::upstream, what + "the ClientHello announces more than 17 KiB"};
  }
  if (closed) return {FaultKind::tls_protocol, Side::upstream, what + "closed by peer"};
  if (error == SSL_ERROR_SYSCALL && wire_error_ != 0) {
    return {FaultKind::tls_protocol, Side::upstream, what + std::strerror(wire_error_)};
  }
  const bool not_tls = reason == "wrong version number" || reason == "http request";
  return {FaultKind::tls_protocol, Side::upstream,
          what + std::string(reason) + (not_tls ? " (the peer does not seem to speak TLS)" : "")};
}

// Returns false if the input of a client exceeds the bound of its first message.
bool TlsTransport::admits(std::span<const char> input) {
  if (handshake_ == nullptr || SSL_is_server(ssl_.get()) == 0) return true;
  handshake_->too_long = !handshake_->hello.accept(input, SSL_version(ssl_.get()) == TLS1_2_VERSION);
  return !handshake_->too_long;
}

// In TLS 1.3 a client's certificate follows the server's Finished; a resumed client shows none.
bool TlsTransport::lacks_finished_only() const {
  if (!finished_sent_ || established_) return false;
  return SSL_get_verify_mode(ssl_.get()) == SSL_VERIFY_NONE || SSL_session_reused(ssl_.get()) == 1;
}

std::uint8_t TlsTransport::refusal_alert() const {
  return refuses_certificate(alert_) ? alert_ : std::uint8_t{0};
}

bool TlsTransport::protocols_refused() const {
  return alert_ == SSL_AD_NO_APPLICATION_PROTOCOL;
}

void TlsTransport::refuse_certificate(std::string why) {
  if (handshake_ && handshake_->refusal.empty()) handshake_->refusal = std::move(why);
}

const std::string& TlsTransport::wanted_name() const {
  static const std::string none;
  return handshake_ ? handshake_->wanted : none;
}

}  // namespace carpool::proxy::tls
