// A key that exists in another table is named before a similar one of this table: a known key in full
// means that the table is wrong. A key of the top level that stands below a table header belongs to that table in TOML,
// which many do not expect, so its text names the remedy.
#include "proxy/config/unknown_key.h"

#include <vector>

#include "proxy/config/text.h"

namespace carpool::proxy::config {
namespace {

constexpr std::size_t kMaxHomes = 4;

// Returns the header of a section: `[pool]`, `[[listen]]`, `[origin.request]`.
std::string table_header(const Section& section, bool in_origin) {
  if (section.repeated) return "[[" + std::string(section.path) + "]]";
  const bool below = in_origin && section.in_origin != nullptr && section.path != "origin";
  return '[' + (below ? "origin." + std::string(section.path) : full_path(section)) + ']';
}

// Returns the tables that have the key; for an origin, those that an origin may have, if there are any.
std::vector<const Section*> homes_of(std::string_view key, bool in_origin) {
  std::vector<const Section*> all, of_origin;
  for (const Section& section : sections()) {
    if (find_setting(section, key) == nullptr) continue;
    all.push_back(&section);
    if (section.in_origin != nullptr || section.path == "origin") of_origin.push_back(&section);
  }
  return in_origin && !of_origin.empty() ? of_origin : all;
}

std::string home_text(const std::vector<const Section*>& homes, bool in_origin) {
  std::string tables;
  bool top = false;
  std::size_t named = 0;
  for (const Section* section : homes) {
    top |= section->path.empty();
    if (section->path.empty() || ++named > kMaxHomes) continue;
    tables.append(tables.empty() ? "" : ", ").append(table_header(*section, in_origin));
  }
  if (named > kMaxHomes) tables += " and others";
  if (top && tables.empty()) return "there is one at the top of the file, before the first [table]";
  return "there is one in " + tables + (top ? ", and at the top of the file, before the first [table]" : "");
}

std::vector<std::string_view> names_in(const Section& section) {
  std::vector<std::string_view> known;
  for (const Setting& setting : section.settings) known.push_back(setting.key);
  const std::string below = section.path.empty() || section.path == "origin" ? "" : std::string(section.path) + '.';
  for (const Section& other : sections()) {
    const bool child = other.path.size() > below.size() && other.path.starts_with(below) &&
                       other.path.find('.', below.size()) == std::string_view::npos;
    if (child && (section.path != "origin" || other.in_origin != nullptr))
      known.push_back(other.path.substr(below.size()));
  }
  return known;
}

// Returns the most similar key of any table, for one that is misspelled and in the wrong table.
std::string_view similar_elsewhere(std::string_view key) {
  std::vector<std::string_view> known;
  for (const Section& section : sections()) {
    for (const Setting& setting : section.settings) known.push_back(setting.key);
  }
  constexpr std::size_t kShort = 5;  // short words resemble too many keys
  return key.size() < kShort ? std::string_view() : nearest(key, known);
}

// Names the section whose last part is `key`: `[pool.warm_up]` for `warm_up`.
std::string section_named(std::string_view key, bool in_origin) {
  for (const Section& other : sections()) {
    if (!other.path.ends_with('.' + std::string(key))) continue;
    return "there is a section " + table_header(other, in_origin);
  }
  return {};
}

}  // namespace

std::string unknown_key(const Section& section, std::string_view key, bool in_origin) {
  const bool within = in_origin && section.path != "origin";
  const std::string where = section.path.empty() ? "of the top level" : "of " + table_header(section, within);
  std::string error = "is not known, expected a key " + where;
  if (const auto homes = homes_of(key, in_origin); !homes.empty())
    return error.append("; ").append(home_text(homes, in_origin));
  if (const auto meant = nearest(key, names_in(section)); !meant.empty())
    return error.append("; did you mean `").append(meant).append("`?");
  if (const std::string there = section_named(key, in_origin); !there.empty()) return error.append("; ").append(there);
  const auto meant = similar_elsewhere(key);
  if (meant.empty()) return error;
  return error.append("; did you mean `")
      .append(meant)
      .append("`? ")
      .append(home_text(homes_of(meant, in_origin), in_origin));
}

}  // namespace carpool::proxy::config
