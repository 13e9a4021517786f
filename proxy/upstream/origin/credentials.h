// Credentials: the fields that carpool adds to the requests of one origin; their values are secret. A value from a file
// follows the file. While the file cannot be read, the last good value stays in force.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
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
  // InForce: the fields that a loop adds to requests.
  struct InForce {
    std::uint64_t version = 0;
    std::uint64_t token = 0;  // the number of the token; 0 if there is none
    http::Fields fields;
  };
  // Reads the files. The Fault names the origin, the field and the reason. Blocks.
  static Result<std::unique_ptr<Credentials>> make(const config::OriginSettings& origin, unsigned loops);
  ~Credentials();

  // Returns the fields in force for loop `loop`, valid until its next call. Takes no lock and allocates nothing unless
  // a value has changed. The ProvenPeer shows that the connection leads to the origin for certain.
  const InForce& in_force(const net::ProvenPeer&, LoopId loop) LOOP_ONLY;
  bool sets(std::string_view name) const;  // any thread, because the names never change

  // FileEvent: a change of the file of one field.
  struct FileEvent {
    std::string name;   // name of the field
    std::string fault;  // empty: a new value is in force
  };
  // Reads the files again. Returns the fields whose value changed, and those whose file became unreadable or unusable
  // since the last call. If the fields are too large together, none of them changes. Blocks; a call waits for the end
  // of another one, so the value that was read last is in force.
  std::vector<FileEvent> check_files();
  bool has_files() const;
  std::uint32_t stale() const;  // number of files that could not be read by the last check_files()

  // nullptr without [origin.oauth2].
  OAuthToken* token() const { return token_.get(); }
  std::string client_secret() const;
  const std::string& label() const { return label_; }
  bool made_of(const config::OriginSettings& origin) const;

 private:
  struct Value {
    std::string bytes;
    std::string fault;  // fault of its file at the last check_files()
  };
  Credentials(const config::OriginSettings& origin, unsigned loops);
  using Reading = std::map<std::size_t, Result<std::string>>;  // what the files contain now, by the index of settings_
  bool fields_fit(const Reading& reading) const REQUIRES(mutex_);
  void publish();

  const std::string label_;
  const std::vector<config::SetField> settings_;
  const std::size_t fields_;  // number of fields, which come first in settings_; the client's secret follows
  const std::unique_ptr<OAuthToken> token_;
  std::vector<InForce> copies_;  // one per loop
  std::atomic<std::uint64_t> version_{0};
  Mutex check_mutex_;  // held throughout check_files(); taken before mutex_
  mutable Mutex mutex_;
  std::vector<Value> values_ GUARDED_BY(mutex_);  // in the order of settings_
};

}  // namespace carpool::proxy
