// The log: one structured line per event, JSON or text, to stderr, a file or syslog; the access log may have its own
// file.
//
// A loop never waits for the reader of the log: lines go through a bounded queue (spdlog's, one writer thread), and
// while the reader is blocked the newest ones are dropped and counted. A disabled level costs one comparison and no
// allocation. Before start() and after stop() lines are written synchronously as text, so that startup errors are not
// lost.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"

namespace carpool::proxy::log {

enum class Level : std::uint8_t { trace, debug, info, warn, error, off };
enum class Format : std::uint8_t { json, text, combined };  // combined: for the access log only

struct Options {
  Level level = Level::info;
  Format format = Format::json;
  int fd = 2;
  std::string file = {};         // path; replaces `fd`
  std::string syslog = {};       // path of a socket; replaces `file` and `fd`
  std::string access_file = {};  // path for the lines of the access log; if empty, they go to the main log
};

// Must not run while other threads log. After a Fault (a file cannot be opened, a thread cannot be started) lines are
// still written synchronously. stop() waits at most a second for queued lines to be written.
Status start(const Options& options);
void stop();

// ---- any thread ----
// Waits until the log's files are on disk, which takes milliseconds. Returns false if that failed or no output is a
// file.
bool sync();
std::uint64_t dropped();  // lines lost since the process started
// Reopens the files under the names they had at start(), for log rotation by renaming. Returns false if no output is a
// file (a pipe, a terminal and syslog are none) or one cannot be opened. May block on the file system.
bool reopen();

// Field: a name (plain ASCII, chosen by the program) and a value (escaped). Both need to live only for the call.
struct Field {
  // monostate: the value is not known, and the line has no such field.
  using Value = std::variant<std::monostate, std::string_view, std::int64_t, std::uint64_t, double, bool>;
  std::string_view key;
  Value value;

  Field(std::string_view k, std::string_view v) : key(k), value(v) {}
  Field(std::string_view k, const char* v) : key(k), value(std::string_view(v)) {}
  Field(std::string_view k, bool v) : key(k), value(v) {}
  Field(std::string_view k, std::floating_point auto v) : key(k), value(static_cast<double>(v)) {}
  Field(std::string_view k, std::signed_integral auto v) : key(k), value(static_cast<std::int64_t>(v)) {}
  Field(std::string_view k, std::unsigned_integral auto v) : key(k), value(static_cast<std::uint64_t>(v)) {}
  template <class Known>
  Field(std::string_view k, const std::optional<Known>& v) : key(k) {
    if (v) value = *v;
  }
};
// Returns nullopt for an empty text, whose field is left out.
inline std::optional<std::string_view> unless_empty(std::string_view text) {
  return text.empty() ? std::nullopt : std::optional(text);
}
using Fields = std::initializer_list<Field>;

// Example: log::warn("egress", "denied", {{"origin", label}, {"reason", fault.detail}});
void write(Level level, std::string_view module, std::string_view message, Fields fields = {});

inline void debug(std::string_view module, std::string_view message, Fields fields = {}) {
  write(Level::debug, module, message, fields);
}
inline void info(std::string_view module, std::string_view message, Fields fields = {}) {
  write(Level::info, module, message, fields);
}
inline void warn(std::string_view module, std::string_view message, Fields fields = {}) {
  write(Level::warn, module, message, fields);
}
inline void error(std::string_view module, std::string_view message, Fields fields = {}) {
  write(Level::error, module, message, fields);
}

}  // namespace carpool::proxy::log
