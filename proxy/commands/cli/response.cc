#include "proxy/commands/cli/response.h"

namespace carpool::proxy::cli {
namespace {

// Returns an empty object if `json` is not an object.
Json object(const Json& json) {
  return json.is_object() ? json : Json::object();
}

std::string levels_table(const Json& answer) {
  const Json modules = object(answer.value("modules", Json()));
  Table table({"MODULE", "LEVEL"});
  table.add({modules.empty() ? "all" : "others", cell(answer.value("level", Json()))});
  for (const auto& [module, level] : modules.items()) table.add({cell(module), cell(level)});
  return table.text();
}

// Adds a row for each value of either side; {"wait_seconds": {"p99": 1}} becomes "wait_seconds p99". A cause missing on
// one side is shown as a dash.
void compare(const Json& present, const Json& what_if, const std::string& before, Table& table) {
  Json names = present;
  for (const auto& [name, value] : what_if.items()) names[name] = value;
  for (const auto& [name, value] : names.items()) {
    const Json now = present.value(name, Json()), then = what_if.value(name, Json());
    if (value.is_object()) {
      // Settings and outcomes are shown without this prefix.
      const bool plain = name == "settings" || name == "outcome";
      compare(object(now), object(then), plain ? before : before + name + " ", table);
    } else {
      table.add({cell(before + name), cell(now), cell(then)});
    }
  }
}

std::string what_if_text(const Json& answer) {
  std::string text;
  for (const auto& [name, value] : answer.items()) {
    if (name == "present") {
      Table table({"", "PRESENT", "WHAT_IF"});
      compare(object(value), object(answer.value("what_if", Json())), "", table);
      text += table.text();
    } else if (name != "what_if") {
      text += shown(Json{{name, value}});
    }
  }
  return text;
}

// Omits counters that are zero, as most causes of most pools are.
std::string pool_text(Json answer) {
  for (const char* const counts : {"connections", "opened", "closed", "failures"}) {
    const Json all = object(answer.value(counts, Json()));
    Json some = Json::object();
    for (const auto& [name, count] : all.items()) {
      if (count != 0) some[name] = count;
    }
    answer[counts] = some.empty() ? Json("none") : some;
  }
  return shown(answer);
}

}  // namespace

std::string text_of(const Command& command, const Json& answer) {
  if (command.name == "pools") return pools_table(answer.value("pools", Json::array()));
  if (command.name == "pool") return pool_text(answer);
  if (command.name == "connections") return connections_table(answer.value("connections", Json::array()));
  if (command.name == "log-level") return levels_table(answer);
  if (command.name == "what-if") return what_if_text(answer);
  return shown(answer);
}

}  // namespace carpool::proxy::cli
