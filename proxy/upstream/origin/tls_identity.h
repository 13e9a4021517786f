// TlsIdentity: one TLS identity towards origins, loaded when the first origin needs it. Reading the system's bundle
// takes tens of milliseconds: a blocking task of the loop that asked first; the dials of all loops wait in the mail.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "exec/loop.h"
#include "exec/submitter.h"
#include "exec/task.h"
#include "proxy/net/tls/client_context.h"

namespace carpool::proxy {

class TlsIdentity {
 public:
  explicit TlsIdentity(tls::ClientSettings settings) : settings_(std::move(settings)) {}

  bool signs() const { return !settings_.cert_file.empty(); }  // with a client certificate
  Status load();  // now, on this thread: for files that the configuration names
  // Returns true if get() answers now. If not, `mail` arrives on `loop` when it does; the loading is one of `tasks`.
  bool ready_or_notify(exec::Loop& loop, exec::Submitter& tasks, exec::Mail& mail) LOOP_ONLY;
  // The loop ends: `mail` is not wanted any more. Afterwards it will not be posted; it may have been.
  void forget(const exec::Mail& mail);
  // A Fault of kind `budget`: nobody would run the loading; who comes next tries again.
  Result<std::shared_ptr<tls::ClientContext>> get();

  std::shared_ptr<tls::ClientContext> loaded();  // nullptr: not needed yet
  // The fingerprint of the context that get() answers, 0: none yet. What was made by a context of another fingerprint
  // was verified by other authorities or shows another certificate: it must serve no further request. Any thread;
  // acquire, with the release of replace().
  std::uint64_t in_force() const { return in_force_.load(std::memory_order_acquire); }

  // Reads its files again. Null: they hold what was loaded, or they were never needed. Blocking, on any one thread.
  Result<std::shared_ptr<tls::ClientContext>> renew();
  // From now on get() answers this one. Dials in progress and connections keep the one before, and are outdated.
  void replace(std::shared_ptr<tls::ClientContext> context);

 private:
  // Never twice at a time, so it is embedded.
  struct Loading final : exec::Task {
    explicit Loading(TlsIdentity& i) : identity(i) {}
    const char* name() const override { return "loading certificates"; }
    void run() override { identity.finish(tls::ClientContext::make(identity.settings_)); }
    void close() override { identity.give_up(); }
    TlsIdentity& identity;
  };
  void finish(Result<std::unique_ptr<tls::ClientContext>> made);
  void give_up();
  void put_in_force(std::shared_ptr<tls::ClientContext> context);
  void tell_all();

  const tls::ClientSettings settings_;
  Loading loading_task_{*this};
  std::atomic<std::uint64_t> in_force_{0};
  std::mutex mutex_;
  bool loading_ = false;  // guarded by mutex_, as all below
  std::shared_ptr<tls::ClientContext> context_;
  std::optional<Fault> fault_;
  std::vector<std::pair<exec::Loop*, exec::Mail*>> waiting_;
};

}  // namespace carpool::proxy
