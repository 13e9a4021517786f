// Credentials: the fields that the requests to one origin get, and the values that carpool keeps to itself. A value
// from a file follows the file; while the file cannot be read, the last good value stays.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "exec/loop.h"
#include "proxy/config/config.h"
#include "proxy/http/message.h"
#include "proxy/net/dialed.h"

namespace carpool::proxy {

class Credentials {
 public:
  // Reads the files. The Fault names the origin, the field and the reason. Blocking.
  static Result<std::unique_ptr<Credentials>> make(const config::OriginSettings& origin, unsigned loops);
  ~Credentials();

  // The fields in force, on loop `loop`; valid until its next call. Without a lock and an allocation unless a value has
  // changed. Only for a connection that leads to the origin for certain.
  const http::Fields& fields(const net::ProvenPeer&, exec::LoopId loop) LOOP_ONLY;
  bool sets(std::string_view name) const;  // any thread: the names never change

  // The event of a file that was looked at.
  struct Look {
    std::string name;   // of the field
    std::string fault;  // empty: the file has a new value, which is in force
  };
  // Reads the files again. Returns the fields whose value changed, and those whose file became unreadable or unusable
  // since the last call. Blocking; one call at a time.
  std::vector<Look> look();
  bool has_files() const;
  std::uint32_t stale() const;  // the files that could not be read at the last call of look()

  const std::string& label() const { return label_; }
  bool made_of(const config::OriginSettings& origin) const {
    return origin.origin.label() == label_ && origin.headers == settings_;
  }

 private:
  struct Value {
    std::string bytes;
    std::string fault;  // of its file, at the last look
  };
  struct Copy {  // of one loop
    std::uint64_t version = 0;
    http::Fields fields;
  };
  Credentials(const config::OriginSettings& origin, unsigned loops);
  void publish();

  const std::string label_;
  const std::vector<config::SetField> settings_;
  std::vector<Copy> copies_;
  std::atomic<std::uint64_t> version_{0};
  mutable std::mutex mutex_;   // guards what follows
  std::vector<Value> values_;  // in the order of settings_
};

}  // namespace carpool::proxy
