#include "proxy/log/log.h"

#include <chrono>
#include <string>

#include "proxy/log/line.h"
#include "proxy/log/output.h"

namespace carpool::proxy::log {
namespace {

std::string_view name(Level level) {
  switch (level) {
    case Level::trace:
      return "trace";
    case Level::debug:
      return "debug";
    case Level::info:
      return "info";
    case Level::warn:
      return "warn";
    case Level::error:
      return "error";
    case Level::off:
      break;
  }
  return "off";
}

}  // namespace

void write(Level level, std::string_view module, std::string_view message, Fields fields) {
  if (!enabled(level)) return;
  std::string text;
  text.reserve(256);
  Line line(text, current_format(), std::chrono::system_clock::now(), name(level), module);
  line.message(message);
  for (const Field& field : fields) line.field(field);
  line.end();
  submit(text, 1);
}

}  // namespace carpool::proxy::log
