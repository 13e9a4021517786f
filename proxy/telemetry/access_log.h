// AccessLog: one line per exchange, formatted into the loop's own buffer and written in chunks, so that a line costs no
// allocation, no lock and no system call. Header fields are never logged; targets are passed through redacted().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "proxy/telemetry/log.h"

namespace carpool::proxy::log {

struct AccessEntry {
  Instant began{};            // when the head was complete
  std::uint64_t request = 0;  // id, unique in this process
  std::string_view client;    // address
  std::string_view user;      // that its credentials name; empty: none
  std::string_view method, target;
  std::string_view origin;   // label; empty: rejected before routing
  std::uint16_t status = 0;  // 499: the client left before the response head
  std::optional<std::uint16_t> grpc_status;
  std::uint64_t bytes_in = 0, bytes_out = 0;
  std::uint64_t connection = 0;      // id of the upstream connection, 0: none
  std::uint32_t reuse = 0;           // exchanges it had served before
  std::optional<Duration> waited;    // for the pool
  std::optional<Duration> upstream;  // from lease to response head
  Duration total{};
  std::string_view opened;  // cause, if the connection was opened for this exchange; else empty
  std::uint32_t retries = 0;
  std::string_view retried;     // the proof of the last retry; empty: none
  std::string_view unrepeated;  // why a failed attempt was not repeated; empty: no such attempt
  bool intercepted = false;     // inside a CONNECT that ended here
  std::string_view tunnelled;   // why a CONNECT to an intercepted origin stayed a tunnel; empty: it did not
  std::string_view trace;       // trace id of the request's traceparent; empty: none
  std::string_view fault;       // error text; empty: none
};

// There is one AccessLog per loop.
class AccessLog {
 public:
  // A line waits in the buffer at most this long: the owner of the loop's timers calls flush().
  static constexpr Duration kFlushAfter = std::chrono::milliseconds(100);

  explicit AccessLog(Format format);
  // Returns true if the buffer was empty, so that a flush is due in kFlushAfter.
  bool write(const AccessEntry& entry);
  void flush();

 private:
  void set_clock();
  const Format format_;
  std::string buffer_;   // whole lines
  std::string scratch_;  // the redacted target
  std::size_t lines_ = 0;
  Duration wall_{};  // offset from the loop's clock to the wall clock, read at each flush
};

}  // namespace carpool::proxy::log
