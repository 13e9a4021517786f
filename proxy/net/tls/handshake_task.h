// HandshakeTask: a step of a TLS handshake on another thread, which owns the TlsTransport until the step has returned.
// Readiness that is reported meanwhile is applied afterwards.
#pragma once

#include <optional>
#include <utility>

#include "exec/loop.h"
#include "exec/submitter.h"
#include "proxy/net/tls/tls_transport.h"

namespace carpool::proxy::tls {

class HandshakeTask : public exec::Task, public exec::Mail {
 public:
  bool away() const { return away_; }  // from submit() to on_returned()
  void submit(exec::Submitter& tasks) LOOP_ONLY {
    away_ = true;
    tasks.submit(exec::lend(*this));  // close() of a rejected task has posted the result
  }
  // Must be called on each event of the socket. Returns true if the transport has it, false if the step is away.
  bool on_readiness(TlsTransport& transport, exec::Ready ready) LOOP_ONLY;
  // Must be called by on_returned(). Returns the result, or nullopt if the next step can be computed at once.
  std::optional<Result<bool>> take_result(TlsTransport& transport) LOOP_ONLY;
  // May be called by on_returned() before take_result(). Returns true if too many tasks existed: nothing was computed,
  // and the step can be submitted again later.
  bool take_rejection(TlsTransport& transport) LOOP_ONLY;

 protected:
  explicit HandshakeTask(exec::Loop& loop) : loop_(loop) {}
  ~HandshakeTask() = default;

 private:
  virtual Result<bool> compute() = 0;  // on any thread
  virtual void on_returned() LOOP_ONLY = 0;
  void run() override;
  void close() override;
  void arrive() override LOOP_ONLY;

  exec::Loop& loop_;
  Result<bool> result_ = false;
  std::optional<exec::Ready> missed_;  // while the step was away
  bool away_ = false;
  bool rejected_ = false;  // the last step
};

}  // namespace carpool::proxy::tls
