// print_reference(): the tables of docs/configuration.md, from the schema.
#pragma once

#include <array>
#include <string>

#include "proxy/config/schema.h"
#include "proxy/config/text.h"

namespace carpool::proxy::config {

inline std::string_view type_name(const Setting& setting, const Value& value) {
  constexpr std::array<std::string_view, std::variant_size_v<Value>> kNames{
      "boolean", "integer", "size", "duration", "text", "list of texts", "list of ports", "secret"};
  return setting.words.empty() ? kNames[value.index()] : "word";
}

inline std::string in_table(std::string_view text) {
  std::string out;
  for (const char c : text) out.append(c == '|' ? "\\" : "").append(1, c);
  return out;
}

inline void print_row(std::string& out, const Section& section, const Setting& setting) {
  const Value value = default_of(section, setting);
  const std::string shown = empty(value) ? "none" : '`' + toml(value) + '`';
  std::string bounds = bounds_text(setting, value);
  if (setting.or_auto) bounds += R"(, or "auto")";
  out.append("| `").append(setting.key).append("` | ").append(type_name(setting, value)).append(" | ").append(shown);
  out.append(" | ").append(in_table(bounds)).append(" | ").append(setting.live ? "reload" : "restart").append(" | ");
  out.append(in_table(setting.doc)).append(" |\n");
}

inline std::string sentence(std::string_view text) {
  std::string out(text);
  if (out.front() >= 'a' && out.front() <= 'z') out.front() = static_cast<char>(out.front() - 'a' + 'A');
  return out;
}

inline std::string title(const Section& section) {
  if (section.path.empty()) return "Top level";
  const std::string path(full_path(section));
  return section.repeated ? "`[[" + path + "]]`" : "`[" + path + "]`";
}

inline std::string print_reference() {
  std::string out;
  for (const Section& section : sections()) {
    out.append("\n### ").append(title(section)).append("\n\n").append(sentence(section.doc));
    if (section.in_origin != nullptr && section.in_config != nullptr) {
      out.append(". An origin overrides it in `[origin.").append(section.path).append("]`");
    }
    if (section.fields) {
      out.append(
          ". Each key is the name of a field, each value a text or `{ file = \"/path\", prefix = \"Bearer \" }`");
      out.append(". A change needs a reload; a file is read again when it changes.\n");
      continue;
    }
    out += ".\n\n| key | type | default | takes | a change needs | meaning |\n|---|---|---|---|---|---|\n";
    for (const Setting& setting : section.settings) print_row(out, section, setting);
  }
  return out;
}

}  // namespace carpool::proxy::config
