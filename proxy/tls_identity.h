// TlsIdentity: one TLS identity towards origins, loaded when the first origin needs it. Reading the system's bundle
// takes tens of milliseconds, so it happens on a thread of its own; dials wait for it in the mail.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "exec/loop.h"
#include "proxy/tls/context.h"

namespace carpool::proxy {

class TlsIdentity {
 public:
  explicit TlsIdentity(tls::ClientSettings settings) : settings_(std::move(settings)) {}
  ~TlsIdentity();

  Status load();  // now, on this thread: for files that the configuration names
  // True: get() answers. False: `mail` arrives on `loop` when it does.
  bool ready_or_notify(exec::Loop& loop, exec::Mail& mail);
  // The loop ends: `mail` is not wanted any more. Afterwards it will not be posted; it may have been.
  void forget(const exec::Mail& mail);
  Result<tls::ClientContext*> get();

 private:
  void finish(Result<std::unique_ptr<tls::ClientContext>> made);
  const tls::ClientSettings settings_;
  std::mutex mutex_;
  std::thread loader_;
  std::unique_ptr<tls::ClientContext> context_;               // guarded by mutex_
  std::optional<Fault> fault_;                                // guarded by mutex_
  std::vector<std::pair<exec::Loop*, exec::Mail*>> waiting_;  // guarded by mutex_
};

}  // namespace carpool::proxy
