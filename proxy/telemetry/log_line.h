// Line: one log line being written into a buffer, in either format. Escapes all external text, so that no request can
// end a line, forge a field or colour a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "proxy/telemetry/log.h"

namespace carpool::proxy::log {

class Line {
 public:
  Line(std::string& out, Format format, WallTime time, std::string_view level, std::string_view module);

  void text(std::string_view key, std::string_view value);
  void word(std::string_view key, std::string_view value);  // a constant of the program: not escaped, contains no space
  void number(std::string_view key, std::uint64_t value);
  void number(std::string_view key, std::int64_t value);
  void number(std::string_view key, double value);
  void flag(std::string_view key, bool value);
  void seconds(std::string_view key, Duration value);  // with microsecond resolution
  void field(const Field& field);
  // Writes the message: right after the module in text format, as "message" in JSON.
  void message(std::string_view value);
  void end();

 private:
  void key(std::string_view name);
  std::string& out_;
  const Format format_;
};

// Appends `value` with everything except printable ASCII escaped as in JSON, without quotes. A byte that is not UTF-8
// becomes \u00xx.
void append_escaped(std::string& out, std::string_view value);
// Appends a time such as 2025-11-21T09:30:00.123Z.
void append_time(std::string& out, WallTime time);

}  // namespace carpool::proxy::log
