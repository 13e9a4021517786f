#include "proxy/config/read_table.h"

#include <optional>
#include <sstream>
#include <string>

#include "proxy/config/nesting.h"

namespace carpool::proxy::config {

Result<toml::table> read_table(std::string_view text) {
  if (const std::optional<Place> deep = deeper_than(text, kMaxLevels)) {
    return Fault{FaultKind::malformed_request, Side::client,
                 std::to_string(deep->line) + ':' + std::to_string(deep->column) + ": " + too_deep_text()};
  }
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    std::ostringstream where;
    where << error.source().begin.line << ':' << error.source().begin.column << ": " << error.description();
    return Fault{FaultKind::malformed_request, Side::client, where.str()};
  }
}

}  // namespace carpool::proxy::config
