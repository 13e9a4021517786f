// The schema: one row per setting. The parser, --print-config, --print-default-config, --print-schema and
// docs/configuration.md are derived from the rows. A row's type and default come from the member of config.h it names.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/config/text_format.h"

namespace carpool::proxy::config {

using Ports = std::optional<std::vector<std::uint16_t>>;  // nullopt: chosen by carpool
// The value of any setting; a word of an enumeration is held as its text.
using Value = std::variant<bool, std::int64_t, Size, Duration, std::string, std::vector<std::string>, Ports, Secret>;

struct Setting {
  std::string_view key;
  std::string_view doc;  // one line
  Value (*get)(const void* section);
  void (*set)(void* section, Value value);
  std::span<const std::string_view> words{};  // the permitted words; empty: any text
  const TextFormat* form = nullptr;           // format of its text or of each of its texts; nullptr: any
  std::int64_t least = 0, most = std::numeric_limits<std::int64_t>::max();  // number, bytes, milliseconds
  std::string_view example{};                                               // shown if the default is empty, as TOML
  bool live = true;                                                         // false: a change needs a restart
  bool usual = true;          // false: the default file leaves it out; the reference has it
  bool or_auto = false;       // accepts "auto": the number of cores that the cgroup grants
  bool auto_stays = false;    // "auto" is kAutomatic instead
  bool or_unlimited = false;  // accepts "unlimited": kUnlimited

  // Bounds are in the setting's unit: a plain number, bytes, or milliseconds.
  Setting& between(std::int64_t low, std::int64_t high) { return least = low, most = high, *this; }
  Setting& at_least(std::int64_t low) { return least = low, *this; }
  Setting& format(const TextFormat& f, std::string_view shown = {}) { return form = &f, example = shown, *this; }
  Setting& shown_as(std::string_view shown) { return example = shown, *this; }
  Setting& restart() { return live = false, *this; }
  Setting& rare() { return usual = false, *this; }
  Setting& takes_auto() { return or_auto = true, *this; }
  Setting& keeps_auto() { return or_auto = auto_stays = true, *this; }
  Setting& takes_unlimited() { return or_unlimited = true, *this; }
};

struct Section {
  std::string_view path;  // "pool.warm_up"; empty: the top level
  std::string_view doc;
  bool repeated = false;  // [[path]]
  std::vector<Setting> settings;
  void* (*in_config)(Config&) = nullptr;          // null: repeated
  void* (*in_origin)(OriginSettings&) = nullptr;  // null: an [[origin]] cannot override it
  const void* defaults = nullptr;
  bool fields = false;  // its keys are names of header fields, its values secrets: std::vector<SetField>; no settings
};

const std::vector<Section>& sections();
// Returns true if the section exists in single origins only, as [origin.PATH].
inline bool of_origins_only(const Section& section) {
  return section.in_config == nullptr && section.in_origin != nullptr;
}
std::string full_path(const Section& section);  // with "origin." if it exists there only
const Section* find_section(std::string_view path);
const Setting* find_setting(const Section& section, std::string_view key);

inline Value default_of(const Section& section, const Setting& setting) {
  return setting.get(section.defaults);
}
// Returns the value as TOML: `"30s"`, `64`, `["h2", "h1"]`; empty for absent ports. The text of a secret is not shown.
std::string toml(const Value& value);
// Returns the value as everything shows it that shows a configuration: without the secrets in the query of a target.
Value masked(const Setting& setting, Value value);
// Returns true for an empty text, an empty list, absent ports and an absent secret.
bool empty(const Value& value);
// Returns "1 to 128", "more than 0s" or "first | random"; empty: any value of its type.
std::string bounds_text(const Setting& setting, const Value& value);

}  // namespace carpool::proxy::config
