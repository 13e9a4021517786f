// The file is walked twice: first everything but [[origin]], then each origin on top of what the sections say. A key is
// looked up in the schema, its value is converted by the type of its row; nothing here knows a setting by name.
#include "proxy/config/read.h"

// Its assertions fire on bad input ("a . . b = 1") that the code behind them reports well.
#define TOML_ASSERT(expr) static_assert(true)
#include <toml++/toml.h>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include "proxy/config/check.h"
#include "proxy/config/cores.h"
#include "proxy/config/resolve.h"
#include "proxy/config/schema.h"
#include "proxy/config/value.h"

namespace carpool::proxy::config {
namespace {

Place place(const toml::source_region& source) {
  return {source.begin.line, source.begin.column};
}

std::string join(std::string_view path, std::string_view key) {
  return path.empty() ? std::string(key) : std::string(path).append(1, '.').append(key);
}

// What a TOML node says, without the library's types.
Raw raw(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return number->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  if (const auto* list = node.as_array()) {
    RawList items;
    for (const toml::node& item : *list) {
      if (item.is_string()) {
        items.emplace_back(item.as_string()->get());
      } else if (item.is_integer()) {
        items.emplace_back(item.as_integer()->get());
      } else {
        items.emplace_back(Other{item.is_table() ? "a table" : "a value of another type"});
      }
    }
    return items;
  }
  if (node.is_table()) return Other{"a table"};
  return Other{node.is_floating_point() ? "a number with a fraction" : "a date or time"};
}

// Where a table's values go: into the Config, or into one origin.
struct Scope {
  Config* config = nullptr;
  OriginSettings* origin = nullptr;
  std::string prefix;  // of keys: "", "origin[1]"

  void* target(const Section& section) const {
    if (origin == nullptr) return section.in_config == nullptr ? nullptr : section.in_config(*config);
    return section.in_origin == nullptr ? nullptr : section.in_origin(*origin);
  }
};

class Reader {
 public:
  Reader(Reading& reading, Places& places, const std::string& file, const Env& env)
      : reading_(reading), places_(places), file_(file), env_(env) {}

  void read(const toml::table& root) {
    const Scope scope{&reading_.config, nullptr, {}};
    read_table(root, *find_section(""), scope, &reading_.config, "");
    if (const toml::array* origins = repeated(root, "origin")) {
      for (const toml::node& node : *origins) read_origin(*node.as_table());
    }
  }

 private:
  void mistake(Place at, std::string_view key, std::string text) {
    reading_.mistakes.push_back({file_, at.line, at.column, without_numbers(key), std::move(text)});
  }

  void read_table(const toml::table& table, const Section& section, const Scope& scope, void* target,
                  const std::string& prefix) {
    for (auto&& [name, node] : table) {
      const std::string key = join(prefix, name.str());
      if (const Setting* setting = find_setting(section, name.str())) {
        read_setting(node, section, *setting, target, key);
      } else if (const Section* child = child_of(section, name.str())) {
        read_child(place(name.source()), node, *child, scope, key);
      } else {
        mistake(place(name.source()), key, unknown_key(section, name.str()));
      }
    }
  }

  // Sections lie below each other by name; those below [[origin]] are the ones that it overrides.
  static const Section* child_of(const Section& section, std::string_view name) {
    return find_section(join(section.path == "origin" ? "" : section.path, name));
  }

  void read_child(Place at, const toml::node& node, const Section& section, const Scope& scope,
                  const std::string& key) {
    if (section.repeated) return read_repeated(at, node, section, scope, key);
    void* const target = scope.target(section);
    if (target == nullptr)
      return mistake(at, key, "is for all origins together, expected in [" + std::string(section.path) + "]");
    const toml::table* const table = node.as_table();
    if (table == nullptr)
      return mistake(at, key, "is " + raw_text(raw(node)) + ", expected a table [" + without_numbers(key) + "]");
    places_.add(key, at);
    read_table(*table, section, scope, target, key);
  }

  void read_repeated(Place at, const toml::node& node, const Section& section, const Scope& scope,
                     const std::string& key) {
    const std::string header = "[[" + std::string(section.path) + "]]";
    if (scope.origin != nullptr)
      return mistake(at, key, "cannot stand inside an origin, expected at the top as " + header);
    const toml::array* const tables = node.as_array();
    if (tables == nullptr || !tables->is_homogeneous(toml::node_type::table)) {
      return mistake(at, key, "is not a list of tables, expected each one under its own " + header);
    }
    if (section.path == "listen") read_listeners(*tables, section, scope);
  }

  void read_listeners(const toml::array& tables, const Section& section, const Scope& scope) {
    auto& listeners = reading_.config.listen;
    listeners.clear();
    for (const toml::node& node : tables) {
      const std::string key = "listen[" + std::to_string(listeners.size()) + "]";
      places_.add(key, place(node.source()));
      read_table(*node.as_table(), section, scope, &listeners.emplace_back(), key);
    }
  }

  // The array of [[name]], if it is one; read_child has said so where it is not.
  static const toml::array* repeated(const toml::table& root, std::string_view name) {
    const toml::array* const tables = root[name].as_array();
    return tables != nullptr && tables->is_homogeneous(toml::node_type::table) ? tables : nullptr;
  }

  void read_origin(const toml::table& table) {
    Config& config = reading_.config;
    const std::string key = "origin[" + std::to_string(config.origins.size()) + "]";
    OriginSettings& origin = config.origins.emplace_back();
    origin.pool = config.pool;
    origin.request = config.request;
    origin.upstream = config.upstream;
    places_.add(key, place(table.source()));
    read_table(table, *find_section("origin"), {&config, &origin, key}, &origin, key);
    if (!places_.given(key + ".uri") && !places_.wrong(key + ".uri")) {
      mistake(place(table.source()), key + ".uri", "is missing, expected " + std::string(kOriginUri.expected));
    }
  }

  void read_setting(const toml::node& node, const Section& section, const Setting& setting, void* target,
                    const std::string& key) {
    Place at = place(node.source());
    const Value by_default = default_of(section, setting);
    Raw written = raw(node);
    std::string wrong = expand_all(written, env_);
    Value value = by_default;
    if (wrong.empty()) wrong = convert(setting, std::move(written), value);
    at.wrong = !wrong.empty();
    places_.add(key, at);
    if (at.wrong) return mistake(at, key, std::move(wrong));
    if (setting.later && value != by_default) {
      const std::string only = empty(by_default) ? "none" : toml(by_default);
      mistake(at, key, toml(value) + " is not yet available, expected the default, " + only);
    }
    setting.set(target, std::move(value));
  }

  Reading& reading_;
  Places& places_;
  const std::string& file_;
  const Env& env_;
};

}  // namespace

Reading read_text(std::string_view text, const std::string& file, const Env& env) {
  Reading reading;
  Places places;
  try {
    const toml::table root = toml::parse(text);
    Reader(reading, places, file, env).read(root);
  } catch (const toml::parse_error& error) {
    const Place at = place(error.source());
    reading.mistakes.push_back({file, at.line, at.column, "syntax", std::string(error.description())});
    return reading;
  }
  resolve(reading.config, places);
  check(reading, places, file);
  sort_by_place(reading.mistakes);
  return reading;
}

Reading read_file(const std::string& path, const Env& env) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  // An empty file sets failbit on `text`; a directory opens and fails to be read.
  if (!in || (in.peek() != std::ifstream::traits_type::eof() && !(text << in.rdbuf())) || in.bad()) {
    Reading reading;
    const std::string why = std::generic_category().message(errno);
    reading.mistakes.push_back({path, 1, 1, "file", "cannot be read: " + why + ", expected a TOML file"});
    return reading;
  }
  return read_text(text.str(), path, env);
}

}  // namespace carpool::proxy::config
