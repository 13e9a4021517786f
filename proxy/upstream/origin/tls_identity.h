// TlsIdentity: one TLS identity towards origins, loaded when the first origin needs it. Reading the system's bundle
// takes tens of milliseconds, so it runs as a blocking task; dials of all loops wait for a message.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "exec/loop.h"
#include "exec/submitter.h"
#include "exec/task.h"
#include "proxy/net/tls/client_context.h"

namespace carpool::proxy {

class TlsIdentity {
 public:
  explicit TlsIdentity(tls::ClientSettings settings) : settings_(std::move(settings)) {}

  bool signs() const { return !settings_.cert_file.empty(); }  // returns true if a client certificate is configured
  Status load();                                               // blocks; for files that the configuration names
  // Returns true if get() has a result. Otherwise submits the loading to `tasks`, unless it is in progress, and posts
  // `mail` to `loop` when it ends.
  bool ready_or_notify(exec::Loop& loop, exec::Submitter& tasks, exec::Mail& mail) LOOP_ONLY;
  // Must be called before `mail` is destroyed. `mail` is not posted after this call. Returns false if it is not
  // waiting: it was posted before, and must not be destroyed until it arrives.
  [[nodiscard]] bool forget(const exec::Mail& mail);
  // Must be called after ready_or_notify() returned true or its mail arrived. Returns a Fault of kind `overloaded` if
  // the loading was rejected, or `budget` if it failed for a reason that may pass; the next caller of ready_or_notify()
  // tries again.
  Result<std::shared_ptr<tls::ClientContext>> get();

  std::shared_ptr<tls::ClientContext> loaded();  // nullptr before it is needed
  // Returns the fingerprint of the context in force; 0 if none is loaded. A connection made with another fingerprint
  // was verified by other authorities or shows another certificate, so it must serve no further request. Any thread.
  // Acquire: pairs with the release in put_in_force().
  std::uint64_t in_force() const { return in_force_.load(std::memory_order_acquire); }

  // Reads the files again. Returns nullptr if their content is unchanged or was never needed. If a reading is in
  // progress, returns nullptr and that reading is repeated. Blocks; must not be called concurrently.
  Result<std::shared_ptr<tls::ClientContext>> renew();
  // Makes `context` the result of get(). Dials in progress and open connections keep the previous one and become
  // outdated.
  void replace(std::shared_ptr<tls::ClientContext> context);

 private:
  // Loading: the task; a member, because at most one runs at a time.
  struct Loading final : exec::Task {
    explicit Loading(TlsIdentity& i) : identity(i) {}
    const char* name() const override { return "loading certificates"; }
    void run() override { identity.load_now(); }
    void close() override { identity.give_up(); }
    TlsIdentity& identity;
  };
  void load_now();
  bool finish(Result<std::unique_ptr<tls::ClientContext>> made);
  void give_up();
  void put_in_force(std::shared_ptr<tls::ClientContext> context) REQUIRES(mutex_);
  void notify_all() REQUIRES(mutex_);

  const tls::ClientSettings settings_;
  Loading loading_task_{*this};
  std::atomic<std::uint64_t> in_force_{0};
  Mutex mutex_;
  bool loading_ GUARDED_BY(mutex_) = false;
  bool stale_ GUARDED_BY(mutex_) = false;  // the files may have changed after the loading began to read them
  std::shared_ptr<tls::ClientContext> context_ GUARDED_BY(mutex_);
  std::optional<Fault> fault_ GUARDED_BY(mutex_);
  std::vector<std::pair<exec::Loop*, exec::Mail*>> waiting_ GUARDED_BY(mutex_);
};

}  // namespace carpool::proxy
