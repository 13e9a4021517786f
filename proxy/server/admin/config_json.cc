#include "proxy/server/admin/config_json.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "proxy/config/check.h"
#include "proxy/config/schema.h"
#include "proxy/config/text.h"
#include "proxy/server/admin/json.h"

namespace carpool::proxy::admin {
namespace {

using config::Section;

Json json_of(const config::Secret& secret) {
  if (!secret.given()) return nullptr;
  if (secret.file.empty()) return {{"hidden", true}};
  Json json{{"file", secret.file}};
  if (!secret.prefix.empty()) json["prefix"] = secret.prefix;
  return json;
}

struct ToJson {
  Json operator()(bool flag) const { return flag; }
  Json operator()(std::int64_t number) const { return number == config::kAutomatic ? Json("auto") : Json(number); }
  Json operator()(config::Size bytes) const { return config::size_text(bytes); }
  Json operator()(Duration duration) const {
    return duration == config::kUnlimited ? "unlimited" : config::duration_text(duration);
  }
  Json operator()(const std::string& text) const { return text; }
  Json operator()(const std::vector<std::string>& texts) const { return texts; }
  Json operator()(const config::Ports& ports) const { return or_null(ports); }
  Json operator()(const config::Secret& secret) const { return json_of(secret); }
};

// Returns the object to which the keys of the section at `path` belong, and makes it and those above it.
Json& table_at(Json& root, std::string_view path) {
  Json* table = &root;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('.'), path.size());
    table = &(*table)[std::string(path.substr(0, end))];
    if (table->is_null()) *table = Json::object();
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return *table;
}

void add_values(Json& table, const Section& section, const void* values,
                const config::OriginSettings* origin = nullptr) {
  if (section.fields) {
    for (const config::SetField& field : *static_cast<const std::vector<config::SetField>*>(values))
      table[field.name] = json_of(field.value);
    return;
  }
  for (const config::Setting& setting : section.settings) {
    if (origin != nullptr && config::only_inherited(*origin, section, setting)) continue;
    table[std::string(setting.key)] = std::visit(ToJson{}, config::masked(setting, setting.get(values)));
  }
}

Json json_of(config::OriginSettings& origin) {
  Json json = Json::object();
  add_values(json, *config::find_section("origin"), &origin, &origin);
  for (const Section& section : config::sections()) {
    if (section.in_origin != nullptr)
      add_values(table_at(json, section.path), section, section.in_origin(origin), &origin);
  }
  return json;
}

// The members of one configuration besides "origin".
Json json_without_origins(config::Config& config) {
  Json json = Json::object();
  for (const Section& section : config::sections()) {
    if (section.in_config != nullptr) add_values(table_at(json, section.path), section, section.in_config(config));
    if (section.path != "listen") continue;
    for (const config::Listen& listen : config.listen) {
      Json one = Json::object();
      add_values(one, section, &listen);
      json["listen"].push_back(std::move(one));
    }
  }
  return json;
}

}  // namespace

std::string config_json(const config::Config& config) {
  config::Config copy = config;  // the schema's accessors take non-const pointers
  std::string out = text_of(json_without_origins(copy));
  out.resize(out.size() - std::string_view("\n}").size());
  out.append(",\n  \"origin\": [");
  for (config::OriginSettings& origin : copy.origins) {
    out.append(&origin == copy.origins.data() ? "\n" : ",\n");
    append_member(out, json_of(origin));
  }
  return out.append(copy.origins.empty() ? "]\n}\n" : "\n  ]\n}\n");
}

}  // namespace carpool::proxy::admin
