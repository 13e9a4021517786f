// AccessLog: formats one line per exchange into the loop's own buffer and writes the buffer in chunks, so that a line
// costs no allocation, no lock and no system call. Header fields are never logged, except two in the combined format;
// targets are passed through redacted().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "proxy/telemetry/access_entry.h"
#include "proxy/telemetry/log.h"

namespace carpool::proxy::log {

// There is one AccessLog per loop.
class AccessLog {
 public:
  // A line stays in the buffer for at most this long: the owner of the loop's timers calls flush().
  static constexpr Duration kFlushAfter = std::chrono::milliseconds(100);

  explicit AccessLog(Format format);
  bool wants_fields() const { return format_ == Format::combined; }  // `referer` and `user_agent`
  // Returns true if the buffer was empty, so that a flush is due in kFlushAfter.
  bool write(const AccessEntry& entry);
  void flush();

 private:
  const Format format_;
  std::string buffer_;   // complete lines
  std::string scratch_;  // the redacted target
  std::string referer_;  // the redacted referer
  std::size_t lines_ = 0;
  Duration wall_{};  // offset from the loop's clock to the wall clock, read at each flush
};

}  // namespace carpool::proxy::log
