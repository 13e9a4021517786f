#include "proxy/config/read_overlay.h"

#define TOML_ASSERT(expr) static_assert(true)
#include <toml++/toml.h>
#include <map>
#include <sstream>

#include "proxy/config/read_table.h"

namespace carpool::proxy::config {
namespace {

using OriginUri = std::optional<std::string>;

OriginUri uri_of(const toml::node& origin) {
  const toml::table* const table = origin.as_table();
  return table == nullptr ? std::nullopt : (*table)["uri"].value<std::string>();
}

void merge(toml::table& base, const toml::table& over, bool top);

// Merges origins with the same uri. If `base` lists a uri twice, which check() rejects, the last one is merged.
void merge_origins(toml::array& base, const toml::array& over) {
  std::map<std::string, toml::table*> known;
  const auto learn = [&known](toml::node& origin) {
    if (const OriginUri uri = uri_of(origin)) known.insert_or_assign(*uri, origin.as_table());
  };
  for (toml::node& origin : base) learn(origin);
  for (const toml::node& origin : over) {
    const OriginUri uri = uri_of(origin);
    const auto same = uri ? known.find(*uri) : known.end();
    if (same != known.end()) {
      merge(*same->second, *origin.as_table(), false);
      continue;
    }
    origin.visit([&base](const auto& value) { base.push_back(value); });
    learn(base.back());
  }
}

void merge(toml::table& base, const toml::table& over, bool top) {
  for (auto&& [name, node] : over) {
    toml::node* const known = base.get(name.str());
    if (known != nullptr && known->is_table() && node.is_table()) {
      merge(*known->as_table(), *node.as_table(), false);
    } else if (top && name.str() == "origin" && known != nullptr && known->is_array() && node.is_array()) {
      merge_origins(*known->as_array(), *node.as_array());
    } else {
      node.visit([&base, key = name.str()](const auto& value) { base.insert_or_assign(key, value); });
    }
  }
}

}  // namespace

Result<std::string> overlay(std::string_view base, std::string_view over) {
  Result<toml::table> merged = read_table(base);
  if (!merged) return merged.take_fault();
  const Result<toml::table> changes = read_table(over);
  if (!changes) return changes.fault();
  merge(*merged, *changes, true);
  std::ostringstream text;
  text << *merged << '\n';
  return text.str();
}

}  // namespace carpool::proxy::config
