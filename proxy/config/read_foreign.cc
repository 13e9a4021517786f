#include "proxy/config/read_foreign.h"

#include "proxy/config/read_table.h"
#include "proxy/config/schema.h"

namespace carpool::proxy::config {
namespace {

bool known_at_the_top(std::string_view name) {
  if (find_setting(*find_section(""), name) != nullptr) return true;
  for (const Section& section : sections()) {
    if (!section.path.empty() && section.path.substr(0, section.path.find('.')) == name) return true;
  }
  return false;
}

}  // namespace

bool foreign(std::string_view toml) {
  const Result<toml::table> table = read_table(toml);
  if (!table || table->empty()) return false;
  for (auto&& [name, node] : *table) {
    if (known_at_the_top(name.str())) return false;
  }
  return true;
}

}  // namespace carpool::proxy::config
