#include "proxy/commands/cli/response.h"

#include <array>
#include <utility>

#include "proxy/commands/cli/origin_word.h"
#include "proxy/commands/cli/pools_table.h"

namespace carpool::proxy::cli {
namespace {

// Returns an empty object if `json` is not an object.
Json object(const Json& json) {
  return json.is_object() ? json : Json::object();
}

// Removes members that a response also has under a new name (docs/upgrade.md).
Json without_old_names(Json response) {
  constexpr std::array<std::pair<const char*, const char*>, 10> kRenamed{{{"shed_level", "sheds"},
                                                                          {"reason", "why_not"},
                                                                          {"explanation", "sentences"},
                                                                          {"opened", "made"},
                                                                          {"current", "present"},
                                                                          {"target_seconds", "goal_seconds"},
                                                                          {"simulated", "what_if"},
                                                                          {"free_bytes", "unused"},
                                                                          {"max", "most"},
                                                                          {"limit", "share"}}};
  if (!response.is_object()) return response;
  for (const auto& [now, before] : kRenamed) {
    if (response.contains(now)) response.erase(before);
  }
  for (auto& [name, member] : response.items()) member = without_old_names(std::move(member));
  return response;
}

std::string levels_table(const Json& response) {
  const Json modules = object(response.value("modules", Json()));
  Table table({"MODULE", "LEVEL"});
  table.add({modules.empty() ? "all" : "others", cell(response.value("level", Json()))});
  for (const auto& [module, level] : modules.items()) table.add({cell(module), cell(level)});
  return table.text();
}

// Adds a row for each value of either side; {"wait_seconds": {"p99": 1}} becomes "wait p99". A cause that one side
// lacks is shown as a dash. `before`, `unit`: from the enclosing objects.
void compare(const Json& current, const Json& simulated, const std::string& before, Unit unit, Table& table) {
  Json names = current;
  for (const auto& [name, value] : simulated.items()) names[name] = value;
  for (const auto& [name, value] : names.items()) {
    const Json now = current.value(name, Json()), then = simulated.value(name, Json());
    const Titled title = titled(name);
    const std::string whole = before + std::string(title.title);
    const Unit its = title.unit == Unit::none ? unit : title.unit;
    if (value.is_object()) {
      // Settings and outcomes are shown without this prefix.
      const bool plain = name == "settings" || name == "outcome";
      compare(object(now), object(then), plain ? before : whole + " ", its, table);
    } else {
      table.add({cell(whole), cell(now, its), cell(then, its)});
    }
  }
}

// Puts the table of both sides between the members before and after it.
std::string what_if_text(const Json& response) {
  std::string text;
  Json around = Json::object();
  for (const auto& [name, value] : response.items()) {
    if (name == "current") {
      text += shown(std::exchange(around, Json::object()));
      Table table({"", "CURRENT", "SIMULATED"});
      compare(object(value), object(response.value("simulated", Json())), "", Unit::none, table);
      text += table.text();
    } else if (name != "simulated") {
      around[name] = value;
    }
  }
  return text + shown(around);
}

// Returns the bars of a histogram that are not zero, named by their upper bounds.
Json bars_of(const Json& histogram, Unit unit) {
  Json bars = Json::object();
  for (const Json& bar : histogram) {
    const Json bound = bar.value("up_to", Json());
    if (bar.value("count", Json(0)) == 0) continue;
    bars[bound.is_null() ? "more" : "up to " + cell(bound, unit)] = bar.at("count");
  }
  return bars;
}

// Renames members whose title without the unit is ambiguous or unclear.
Json with_clear_names(const Json& response) {
  Json clear = Json::object();
  for (const auto& [name, value] : response.items()) {
    clear[name == "paused_seconds" ? "paused_for_seconds" : name == "seconds" ? "time_seconds" : name] = value;
  }
  return clear;
}

// Shows each borrower in one text, as the connections of a pool have it, instead of an object.
std::string leaks_text(Json response) {
  if (!response.value("leaks", Json()).is_array()) return shown(response);
  for (Json& leak : response.at("leaks")) {
    if (!leak.contains("borrower")) continue;
    const Json who = object(leak.value("borrower", Json()));
    std::string line;
    const auto add = [&](const char* before, const char* name, const char* after = "") {
      const Json value = who.value(name, Json());
      if (value.is_null() || value == "") return;
      line.append(line.empty() ? "" : before).append(cell(value)).append(after);
    };
    add("", "request");
    add(" of ", "client");
    add(" as ", "user");
    const bool process = who.value("pid", Json()).is_number();
    if (process) add(" (pid ", "pid");
    add(process ? ", uid " : " (uid ", "uid", ")");
    add(", ", "phase");
    leak["borrower"] = line.empty() ? Json(nullptr) : Json(line);
  }
  return shown(response);
}

// Omits counters that are zero, because most causes of most pools are.
std::string pool_text(const Json& whole) {
  Json response = with_clear_names(whole);
  if (response.contains("saved")) response["saved"] = with_clear_names(object(response.at("saved")));
  if (response.contains("histograms")) {
    Json histograms = Json::object();
    for (const auto& [name, histogram] : response.at("histograms").items()) {
      const Titled title = titled(name);
      histograms[title.title] = bars_of(histogram, title.unit);
    }
    response["histograms"] = std::move(histograms);
  }
  for (const char* const counts : {"connections", "opened", "closed", "failures"}) {
    const Json all = object(response.value(counts, Json()));
    Json some = Json::object();
    for (const auto& [name, count] : all.items()) {
      if (count != 0) some[name] = count;
    }
    response[counts] = some.empty() ? Json("none") : some;
  }
  return shown(response);
}

std::string warm_up_text(Json response) {
  const Json most = response.value("capped_at", Json()), requested = response.value("requested", Json());
  response.erase("requested");
  response.erase("capped_at");
  if (most.is_null()) return shown(response);
  response["capped_at"] = cell(most) + ", the size of the pool now: " + cell(requested) + " were requested";
  return shown(response);
}

}  // namespace

std::string text_of(const Command& command, const Json& whole) {
  const Json response = without_old_names(whole);
  if (command.name == "pools") return pools_table(response.value("pools", Json::array()));
  if (command.name == "origins") return origin_names(response.value("origins", Json::array()));
  if (command.name == "pool") return pool_text(response);
  if (command.name == "connections") return connections_table(response.value("connections", Json::array()));
  if (command.name == "history") return history_table(response);
  if (command.name == "leaks") return leaks_text(response);
  if (command.name == "log-level") return levels_table(response);
  if (command.name == "what-if") return what_if_text(response);
  if (command.name == "warm-up" && response.is_object()) return warm_up_text(response);
  return shown(response);
}

}  // namespace carpool::proxy::cli
