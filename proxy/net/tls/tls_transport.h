// TlsTransport: a Transport with TLS over one socket, in either role. A custom BIO between SSL and the socket keeps the
// sticky readiness bits, so that a record costs one recv or one send, and an idle socket costs none.
//
// A write that would block must be repeated with the same bytes first (more may follow them), because part of their
// record may already be sent. After a write has failed for good, read() still returns what the peer has sent.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "proxy/net/transport.h"

struct ssl_st;
struct ssl_ctx_st;
struct ssl_session_st;

namespace carpool::proxy::tls {

class ClientContext;
class SessionStore;
struct HandshakeState;
struct SocketBio;

// Returns the result of a handshake step for which no thread is free. Throws nothing.
Fault rejected_handshake();

class TlsTransport final : public net::Transport {
 public:
  // `host` is verified and sent as SNI unless the context has a server_name. If one of these throws std::bad_alloc,
  // server() has not taken the socket.
  static std::unique_ptr<TlsTransport> client(ClientContext& context, Fd&& socket, const std::string& host,
                                              std::uint16_t port);
  static std::unique_ptr<TlsTransport> server(ssl_ctx_st* context, Fd&& socket);
  explicit TlsTransport(Fd&& socket);
  ~TlsTransport() override;

  // Overrides the ALPN protocols of the context; must be called before the first handshake().
  void offer(const std::vector<std::string>& protocols);
  // Returns true once established; false: call again on readiness. Faults: tls_certificate, tls_protocol; budget if
  // memory is exhausted. Throws nothing.
  Result<bool> handshake();
  // Sends the client's first flight only: the costly part starts with the server's response, which stays unread even if
  // it is there already. Like handshake(), but never returns true.
  Result<bool> hello();

  net::IoResult read(std::span<char> into) override;
  net::IoResult write(std::span<const iovec> from) override;
  void shut_write() override;
  bool no_data_pending() override;
  bool ended_in_order() override;
  std::size_t unacknowledged() const override;
  net::SecurityInfo security() const override;
  bool flooded() const override { return flooded_; }

  // Returns true if a server's handshake lacks the client's Finished only: the rest costs a few hashes, and neither
  // a signature nor a key.
  bool lacks_finished_only() const;
  // Returns true if the peer's certificate is the first one in `pem`.
  bool peer_shows(const std::string& pem) const;
  // Returns the alert by which the peer refused our certificate in the handshake (RFC 8446 §6.2); 0: none.
  std::uint8_t refusal_alert() const;
  // Returns true if the peer supports none of the protocols that were offered (RFC 7301 §3.2).
  bool protocols_refused() const;
  // Returns true if the handshake failed because the peer closed the connection.
  bool peer_left() const { return peer_left_; }

  // Called by OpenSSL's callbacks.
  void refuse_certificate(std::string why);
  // Notes that a certificate of the peer's chain is valid until `end`, in seconds since 1970; the first end counts.
  void trust_until(std::int64_t end) { trusted_until_ = std::min(trusted_until_, end); }
  std::int64_t trusted_until() const { return trusted_until_; }
  const std::string& wanted_name() const;
  void keep(ssl_session_st* session);
  // Counts a message or a warning without data after the handshake. A peer that sends many without data in between only
  // costs CPU time, so its connection fails. OpenSSL itself bounds empty records of data.
  void count_control();
  void note_finished_sent() { finished_sent_ = true; }

 private:
  friend struct SocketBio;
  struct FreeSsl {
    void operator()(ssl_st* ssl) const;
  };

  bool attach(ssl_ctx_st* context);
  bool admits(std::span<const char> input);
  void begin_call();
  Result<bool> step_handshake();
  Result<bool> do_handshake();
  net::IoResult interpret(int error);
  net::IoResult failure(int error) const;
  Fault handshake_fault(int error);
  bool peek_is_silent();
  bool between_records() const;
  bool drained() const;

  std::unique_ptr<ssl_st, FreeSsl> ssl_;
  std::unique_ptr<HandshakeState> handshake_;
  std::shared_ptr<SessionStore> store_;        // nullptr for servers
  std::string peer_;                           // key in the store
  int wire_error_ = 0;                         // errno of the BIO's last call
  int output_error_ = 0;                       // errno of the write after which the socket accepts no output; 0: none
  bool fin_ = false;                           // the socket reached EOF
  bool fresh_in_ = false, fresh_out_ = false;  // this call has not tried the socket yet
  std::int64_t trusted_until_ = INT64_MAX;     // of the chain that this handshake verified
  bool established_ = false, failed_ = false;
  bool finished_sent_ = false;
  std::uint8_t alert_ = 0;  // by which the peer ended the handshake
  bool peer_left_ = false;
  bool mid_record_ = false;   // one of our records is partly written
  bool flooded_ = false;      // too many control messages: the socket is not read any more
  std::uint8_t control_ = 0;  // control messages since the last data
  // Result of every call once failed_ is set.
  net::IoResult failure_{net::Io::failed, 0, 0, "TLS failed before"};
};

}  // namespace carpool::proxy::tls
