#include "proxy/telemetry/log.h"

#include <chrono>
#include <string>

#include "proxy/telemetry/log_levels.h"
#include "proxy/telemetry/log_line.h"
#include "proxy/telemetry/log_output.h"

namespace carpool::proxy::log {
void write(Level level, std::string_view module, std::string_view message, Fields fields) {
  if (!enabled(level, module)) return;
  std::string text;
  text.reserve(256);
  Line line(text, current_format(), std::chrono::system_clock::now(), name(level), module);
  line.message(message);
  for (const Field& field : fields) line.field(field);
  line.end();
  submit(text, 1, level);
}

}  // namespace carpool::proxy::log
