// TlsTransport: its creation, its records and its sessions. The handshake is in tls_handshake.cc.
#include "proxy/net/tls/tls_transport.h"

#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <cstring>
#include <new>
#include <utility>

#include "base/assert.h"
#include "proxy/net/address.h"
#include "proxy/net/plain_transport.h"
#include "proxy/net/tls/certificate.h"
#include "proxy/net/tls/client_context_impl.h"
#include "proxy/net/tls/control_messages.h"
#include "proxy/net/tls/handshake_state.h"
#include "proxy/net/tls/record_coalescer.h"
#include "proxy/net/tls/socket_bio.h"
#include "proxy/net/tls/trust_end.h"
#include "proxy/net/tls/verify.h"

namespace carpool::proxy::tls {
namespace {

using net::Io;
using net::IoResult;

constexpr std::uint8_t kMaxControl = 32;  // an origin sends up to four tickets, a peer a KeyUpdate every few gigabytes
constexpr std::string_view kFlooded = "too many TLS messages without data";

// Only subjectAltName identifies the subject of a certificate (RFC 9525 §2): dNSName for a name, iPAddress for an
// address. The common name is ignored.
bool ask_for(SSL* ssl, const std::string& name) {
  SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  if (net::Address::literal(name, 0)) return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name.c_str()) == 1;
  return SSL_set1_host(ssl, name.c_str()) == 1 && SSL_set_tlsext_host_name(ssl, name.c_str()) == 1;
}

void on_step(const SSL* ssl, int where, int) {
  auto* stream = static_cast<TlsTransport*>(SSL_get_app_data(ssl));
  if (stream == nullptr) return;
  if (is_control_message(ssl, where)) stream->count_control();
  if ((where & SSL_CB_ACCEPT_LOOP) == SSL_CB_ACCEPT_LOOP && SSL_get_state(ssl) == TLS_ST_SW_FINISHED) {
    stream->note_finished_sent();
  }
}

}  // namespace

void TlsTransport::FreeSsl::operator()(ssl_st* ssl) const {
  SSL_free(ssl);
}

TlsTransport::TlsTransport(Fd&& socket) : Transport(std::move(socket)) {}

// A handshake that did not complete may have failed because of the session that it offered (RFC 8446 §6.2, RFC 5246
// §7.2.2): without it, the next one is a full handshake.
TlsTransport::~TlsTransport() {
  if (handshake_ && handshake_->resumes) store_->forget(peer_);
  if (established_ && !failed_ && !mid_record_ && !fin_ && !hangup_ && !cut_) {
    begin_call();
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
  }
  ssl_.reset();
}

bool TlsTransport::attach(ssl_ctx_st* context) {
  ERR_clear_error();
  ssl_.reset(SSL_new(context));
  BIO* bio = ssl_ == nullptr ? nullptr : SocketBio::make(*this);
  if (bio == nullptr) return false;
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_info_callback(ssl_.get(), on_step);
  return SSL_set_app_data(ssl_.get(), this) == 1;
}

std::unique_ptr<TlsTransport> TlsTransport::client(ClientContext& context, Fd&& socket, const std::string& host,
                                                   std::uint16_t port) {
  auto& home = context.impl();
  auto stream = std::make_unique<TlsTransport>(std::move(socket));
  stream->store_ = home.store;
  stream->peer_ = peer_name(host, port);
  const std::string& wanted = home.settings.server_name.empty() ? host : home.settings.server_name;
  stream->handshake_ = std::make_unique<HandshakeState>(HandshakeState{stream->peer_, wanted, {}});
  if (!stream->attach(home.context.get()) || !ask_for(stream->ssl_.get(), wanted)) {
    stream->failed_ = true;
    return stream;
  }
  SSL* ssl = stream->ssl_.get();
  SSL_set_verify(ssl, home.settings.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, check_certificate);
  SSL_set_connect_state(ssl);
  if (const auto session = home.store->take(stream->peer_)) {
    stream->handshake_->resumes = SSL_set_session(ssl, session.get()) == 1;
  }
  return stream;
}

std::unique_ptr<TlsTransport> TlsTransport::server(ssl_ctx_st* context, Fd&& socket) {
  auto handshake = std::make_unique<HandshakeState>();
  auto stream = std::make_unique<TlsTransport>(std::move(socket));
  stream->handshake_ = std::move(handshake);
  stream->failed_ = !stream->attach(context);
  if (!stream->failed_) SSL_set_accept_state(stream->ssl_.get());
  return stream;
}

bool TlsTransport::peer_shows(const std::string& pem) const {
  const CertPtr expected = certificate_of(pem);
  const X509* const shown = SSL_get0_peer_certificate(ssl_.get());
  ERR_clear_error();
  return expected && shown != nullptr && X509_cmp(shown, expected.get()) == 0;
}

void TlsTransport::offer(const std::vector<std::string>& protocols) {
  const std::string wire = alpn_wire(protocols);
  const auto* bytes = reinterpret_cast<const unsigned char*>(wire.data());
  if (!failed_) failed_ = SSL_set_alpn_protos(ssl_.get(), bytes, static_cast<unsigned>(wire.size())) != 0;
}

// Every public call tries the socket at least once, whatever the bits are; after that it relies on the bits. The error
// queue belongs to the thread, which may have served another transport in between.
void TlsTransport::begin_call() {
  if (ERR_peek_error() != 0) ERR_clear_error();  // clearing an empty queue costs a tenth of SSL_read
  fresh_in_ = fresh_out_ = true;
  wire_error_ = 0;
}

// Maps an SSL error to a result. Fatal errors are stored, because SSL must not be called again, and because the read
// that meets one behind data returns the data first.
IoResult TlsTransport::interpret(int error) {
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return {};
  if (error == SSL_ERROR_ZERO_RETURN) return {Io::eof, 0, 0, "close_notify"};
  failed_ = true;
  failure_ = failure(error);
  return failure_;
}

IoResult TlsTransport::failure(int error) const {
  const auto reason = take_reason();
  if (flooded_) return {Io::failed, 0, 0, kFlooded};
  if (fin_) return {Io::failed, 0, 0, "closed without close_notify"};
  if (error == SSL_ERROR_SYSCALL) return {Io::failed, 0, wire_error_, "connection lost"};
  return {Io::failed, 0, 0, reason};
}

IoResult TlsTransport::read(std::span<char> into) {
  CARPOOL_ASSERT(!into.empty());
  if (failed_) return failure_;
  begin_call();
  read_needs_write_ = pending_ = partial_ = false;
  std::size_t total = 0;
  while (total < into.size()) {
    std::size_t bytes_read = 0;
    if (SSL_read_ex(ssl_.get(), into.data() + total, into.size() - total, &bytes_read) == 1) {
      control_ = 0;
      total += bytes_read;
      if (!drained()) continue;
      return {Io::ok, total, 0, {}};
    }
    const int error = SSL_get_error(ssl_.get(), 0);
    read_needs_write_ = error == SSL_ERROR_WANT_WRITE;
    partial_ = !between_records();
    const IoResult result = interpret(error);
    if (total == 0) return result;
    pending_ = result.io != Io::would_block;  // the next read reports the end
    return {Io::ok, total, 0, {}};
  }
  pending_ = SSL_has_pending(ssl_.get()) == 1;
  return {Io::ok, total, 0, {}};
}

// Returns true if neither the socket nor SSL has anything more, so that no further call has to find that out.
bool TlsTransport::drained() const {
  return !fresh_in_ && !readable_ && SSL_has_pending(ssl_.get()) == 0;
}

IoResult TlsTransport::write(std::span<const iovec> from) {
  if (failed_) return failure_;
  begin_call();
  RecordCoalescer gather(from);
  std::size_t total = 0;
  for (auto record = gather.next(); !record.empty(); record = gather.next()) {
    std::size_t sent = 0;
    const bool written = SSL_write_ex(ssl_.get(), record.data(), record.size(), &sent) == 1;
    if (output_error_ != 0) {
      mid_record_ = false;
      if (total == 0) return {Io::failed, 0, output_error_, "connection lost"};
      break;
    }
    if (written) {
      mid_record_ = false;
      total += sent;
      gather.advance(sent);
      continue;
    }
    const IoResult result = interpret(SSL_get_error(ssl_.get(), 0));
    mid_record_ = result.io == Io::would_block;
    if (total == 0) return result;
    break;
  }
  CARPOOL_ASSERT(total > 0);
  return {Io::ok, total, 0, {}};
}

void TlsTransport::shut_write() {
  if (established_ && !failed_ && !mid_record_) {
    begin_call();
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
  }
  ::shutdown(fd(), SHUT_WR);
}

bool TlsTransport::no_data_pending() {
  if (failed_ || hangup_ || mid_record_ || !established_ || output_error_ != 0) return false;
  if (SSL_get_shutdown(ssl_.get()) != 0) return false;
  begin_call();
  const bool silent = peek_is_silent();
  pending_ = !silent;
  return silent;
}

// Peeking makes SSL consume tickets and KeyUpdates. A partial record or handshake message may be the beginning of
// anything, so it is not silence.
bool TlsTransport::peek_is_silent() {
  char byte = 0;
  std::size_t bytes_read = 0;
  if (SSL_peek_ex(ssl_.get(), &byte, 1, &bytes_read) == 1) return false;
  const int error = SSL_get_error(ssl_.get(), 0);
  if (interpret(error).io != Io::would_block || error != SSL_ERROR_WANT_READ) return false;
  partial_ = !between_records();
  return !partial_;
}

// Returns true after a close_notify, or a bare FIN between records: nothing can have been truncated.
std::size_t TlsTransport::unacknowledged() const {
  return net::unacknowledged(fd());
}

bool TlsTransport::ended_in_order() {
  if (!established_) return false;
  if ((SSL_get_shutdown(ssl_.get()) & SSL_RECEIVED_SHUTDOWN) != 0) return true;
  if (failed_) return fin_ && between_records();
  begin_call();
  char byte = 0;
  std::size_t bytes_read = 0;
  if (SSL_peek_ex(ssl_.get(), &byte, 1, &bytes_read) == 1) return false;
  const IoResult end = interpret(SSL_get_error(ssl_.get(), 0));
  return end.io == Io::eof || (fin_ && between_records());
}

// Returns true if SSL holds no partial record or handshake message.
bool TlsTransport::between_records() const {
  const bool at_header = std::strcmp(SSL_rstate_string(ssl_.get()), "RH") == 0;
  return at_header && SSL_has_pending(ssl_.get()) == 0 && SSL_in_init(ssl_.get()) == 0;
}

net::SecurityInfo TlsTransport::security() const {
  if (!established_) return {};
  const unsigned char* protocol = nullptr;
  unsigned length = 0;
  SSL_get0_alpn_selected(ssl_.get(), &protocol, &length);
  const char* cipher = SSL_get_cipher_name(ssl_.get());
  return {SSL_get_version(ssl_.get()), cipher != nullptr ? cipher : "",
          std::string_view(reinterpret_cast<const char*>(protocol), length), SSL_session_reused(ssl_.get()) == 1};
}

void TlsTransport::keep(ssl_session_st* session) {
  SessionPtr owned(session);
  if (!store_) return;
  if (SSL_get_verify_mode(ssl_.get()) != SSL_VERIFY_NONE) {
    const bool verified = SSL_session_reused(ssl_.get()) == 0;  // a resumed one keeps the end of the one before
    if (verified && !write_trust_end(session, trusted_until_)) return;
    if (!end_session_by(session, trust_end_of(session).value_or(0))) return;
  }
  store_->put(peer_, std::move(owned));
}

void TlsTransport::count_control() {
  if (established_ && ++control_ > kMaxControl) flooded_ = failed_ = true;
}

int keep_session(SSL* ssl, SSL_SESSION* session) {
  try {
    static_cast<TlsTransport*>(SSL_get_app_data(ssl))->keep(session);
  } catch (const std::bad_alloc&) {  // keep() has freed the session: the next handshake is a full one
  }
  return 1;  // takes ownership
}

}  // namespace carpool::proxy::tls
