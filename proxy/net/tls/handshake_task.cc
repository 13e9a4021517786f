#include "proxy/net/tls/handshake_task.h"

namespace carpool::proxy::tls {

bool HandshakeTask::on_readiness(TlsTransport& transport, exec::Ready ready) {
  if (!away_) {
    transport.on_readiness(ready);
    return true;
  }
  if (!missed_) missed_.emplace();
  *missed_ |= ready;
  return false;
}

std::optional<Result<bool>> HandshakeTask::take_result(TlsTransport& transport) {
  const std::optional<exec::Ready> missed = std::exchange(missed_, std::nullopt);
  if (missed) transport.on_readiness(*missed);
  const bool decided = !result_ || *result_;
  if (missed && !decided) return std::nullopt;
  return std::exchange(result_, false);
}

bool HandshakeTask::take_rejection(TlsTransport& transport) {
  if (!rejected_) return false;
  result_ = false;
  static_cast<void>(take_result(transport));
  return true;
}

void HandshakeTask::run() {
  rejected_ = false;
  result_ = compute();
  loop_.post(*this);
}

void HandshakeTask::close() {
  rejected_ = true;
  result_ = rejected_handshake();
  loop_.post(*this);
}

void HandshakeTask::arrive() {
  away_ = false;
  on_returned();
}

}  // namespace carpool::proxy::tls
