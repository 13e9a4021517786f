// Credentials: the fields that the requests to one origin get, and the values that carpool keeps to itself. A value
// from a file follows the file; while the file cannot be read, the last good value stays.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "exec/loop.h"
#include "proxy/config/config.h"
#include "proxy/http/message.h"
#include "proxy/net/dialed.h"

namespace carpool::proxy {

class OAuthToken;

class Credentials {
 public:
  // The fields that the requests of a loop get.
  struct InForce {
    std::uint64_t version = 0;
    std::uint64_t token = 0;  // the number of the token; 0: there is none
    http::Fields fields;
  };
  // Reads the files. The Fault names the origin, the field and the reason. Blocking.
  static Result<std::unique_ptr<Credentials>> make(const config::OriginSettings& origin, unsigned loops);
  ~Credentials();

  // Returns the fields in force, on loop `loop`; valid until its next call. Without a lock and an allocation unless a
  // value has changed. Only for a connection that leads to the origin for certain.
  const InForce& in_force(const net::ProvenPeer&, exec::LoopId loop) LOOP_ONLY;
  bool sets(std::string_view name) const;  // any thread: the names never change

  // The event for a file that was checked.
  struct Look {
    std::string name;   // of the field
    std::string fault;  // empty: the file has a new value, which is in force
  };
  // Reads the files again. Returns the fields whose value changed, and those whose file became unreadable or unusable
  // since the last call. Blocking; one call at a time.
  std::vector<Look> look();
  bool has_files() const;
  std::uint32_t stale() const;  // the files that could not be read at the last call of look()

  // nullptr: no [origin.oauth2].
  OAuthToken* token() const { return token_.get(); }
  std::string client_secret() const;
  const std::string& label() const { return label_; }
  bool made_of(const config::OriginSettings& origin) const;

 private:
  struct Value {
    std::string bytes;
    std::string fault;  // of its file, at the last look
  };
  Credentials(const config::OriginSettings& origin, unsigned loops);
  void publish();

  const std::string label_;
  const std::vector<config::SetField> settings_;
  const std::size_t fields_;  // the first ones of settings_; then the client's secret
  const std::unique_ptr<OAuthToken> token_;
  std::vector<InForce> copies_;  // of the loops
  std::atomic<std::uint64_t> version_{0};
  mutable Mutex mutex_;
  std::vector<Value> values_ GUARDED_BY(mutex_);  // in the order of settings_
};

}  // namespace carpool::proxy
