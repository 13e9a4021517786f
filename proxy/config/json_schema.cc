// print_schema(): the rows of the schema as JSON Schema (draft 2020-12), for editors. Patterns also accept ${ENV},
// because an editor sees texts before their expansion.
#include "proxy/config/print.h"
#include "proxy/config/schema.h"

namespace carpool::proxy::config {
namespace {

std::string json(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) out.append(c == '"' || c == '\\' ? "\\" : "").append(1, c);
  return out + '"';
}

std::string text_with_env(std::string_view pattern) {
  return R"("type": "string", "pattern": )" + json(std::string(pattern) + R"(|\$\{)");
}

// Returns a schema for `type` that also permits the text of a variable, or one of `words`.
std::string or_variable(const std::string& type, std::string_view words = {}) {
  const std::string pattern = std::string(words) + (words.empty() ? "" : "|") + R"(\$\{)";
  return R"("anyOf": [{)" + type + R"(}, {"type": "string", "pattern": )" + json(pattern) + "}]";
}

std::string type_of_text(const Setting& setting) {
  if (setting.words.empty()) return R"("type": "string")";
  std::string words;
  for (const auto word : setting.words) words.append(words.empty() ? "^" : "$|^").append(word);
  return text_with_env(words + '$');
}

std::string type_of_secret() {
  return R"("anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": false, "required": ["file"], )"
         R"("properties": {"file": {"type": "string"}, "prefix": {"type": "string"}}}])";
}

std::string type_of(const Setting& setting, const Value& value) {
  if (std::holds_alternative<Secret>(value)) return type_of_secret();
  if (std::holds_alternative<bool>(value)) return or_variable(R"("type": "boolean")");
  if (std::holds_alternative<Duration>(value)) {
    return text_with_env(setting.or_unlimited ? "^[0-9]+(ms|s|m|h)$|^unlimited$" : "^[0-9]+(ms|s|m|h)$");
  }
  if (std::holds_alternative<Size>(value)) return text_with_env("^[0-9]+(B|KiB|MiB|GiB)?$");
  if (std::holds_alternative<std::string>(value)) return type_of_text(setting);
  if (std::holds_alternative<std::vector<std::string>>(value)) return R"("type": "array", "items": {"type": "string"})";
  const std::string number = or_variable(R"("type": "integer", "minimum": )" + std::to_string(setting.least) +
                                             R"(, "maximum": )" + std::to_string(setting.most),
                                         setting.or_auto ? "^auto$" : "");
  return std::holds_alternative<Ports>(value) ? R"("type": "array", "items": {)" + number + '}' : number;
}

bool below(std::string_view path, std::string_view parent) {
  if (path.empty() || (!parent.empty() && !path.starts_with(std::string(parent) + '.'))) return false;
  const std::size_t start = parent.empty() ? 0 : parent.size() + 1;
  return path.find('.', start) == std::string_view::npos;
}

std::string object(const Section& section, bool in_origin, const std::string& indent);

void add_property(std::string& out, const std::string& indent, std::string_view name, const std::string& body) {
  out.append(out.empty() ? "\n" : ",\n").append(indent).append(json(name)).append(": ").append(body);
}

void add_children(std::string& out, const Section& parent, bool in_origin, const std::string& indent) {
  const std::string_view path = parent.path == "origin" ? "" : parent.path;
  for (const Section& section : sections()) {
    if (!below(section.path, path) || (in_origin && section.in_origin == nullptr)) continue;
    if (!in_origin && of_origins_only(section)) continue;
    const std::string name(section.path.substr(path.empty() ? 0 : path.size() + 1));
    std::string body = object(section, in_origin || section.path == "origin", indent);
    if (section.repeated) body.insert(0, R"({"type": "array", "items": )").push_back('}');
    add_property(out, indent, name, body);
  }
}

std::string object(const Section& section, bool in_origin, const std::string& indent) {
  if (section.fields) {
    return R"({"type": "object", "description": )" + json(section.doc) + R"(, "additionalProperties": {)" +
           type_of_secret() + "}}";
  }
  const std::string inner = indent + "  ";
  std::string properties;
  for (const Setting& setting : section.settings) {
    const Value value = default_of(section, setting);
    std::string doc(setting.doc);
    if (!empty(value)) doc += "; default " + toml(value);
    add_property(properties, inner, setting.key,
                 "{" + type_of(setting, value) + R"(, "description": )" + json(doc) + "}");
  }
  add_children(properties, section, in_origin, inner);
  std::string out = R"({"type": "object", "additionalProperties": false, "description": )" + json(section.doc);
  if (section.path == "origin") out += R"(, "required": ["uri"])";
  return out + R"(, "properties": {)" + properties + "}}";
}

}  // namespace

std::string print_schema() {
  std::string out = object(*find_section(""), false, "");
  out.insert(1, R"("$schema": "https://json-schema.org/draft/2020-12/schema", "title": "carpool config.toml", )");
  return out + '\n';
}

}  // namespace carpool::proxy::config
