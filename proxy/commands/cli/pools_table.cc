#include "proxy/commands/cli/pools_table.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace carpool::proxy::cli {
namespace {

constexpr std::size_t kShortOrigin = 24;  // for which columns are left out
constexpr std::size_t kOriginHeader = 6;  // characters of ORIGIN
constexpr std::size_t kWithStates = 6;    // columns of figures that stay while states are in full
constexpr std::size_t kFewest = 4;

constexpr std::array<Column, 12> kPool{{{"ORIGIN", "origin"},
                                        {"OPEN", "active"},
                                        {"IDLE", "borrowable"},
                                        {"BUSY", "borrowed"},
                                        {"DIALING", "connecting"},
                                        {"WAITING", "waiting"},
                                        {"LONGEST", "max_wait_seconds", Unit::seconds},
                                        {"SIZE", "size"},
                                        {"PEAK", "peak"},
                                        {"BORROWS", "borrows"},
                                        {"CREATED", "created"},
                                        {"STATE", "state"}}};
// The most important first.
constexpr std::array<Column, 10> kTop{{{"BUSY", "borrowed"},
                                       {"WAITING", "waiting"},
                                       {"RATE", "per_second", Unit::per_second},
                                       {"OPEN", "active"},
                                       {"SIZE", "size"},
                                       {"IDLE", "borrowable"},
                                       {"DIALING", "connecting"},
                                       {"LONGEST", "max_wait_seconds", Unit::seconds},
                                       {"PEAK", "peak"},
                                       {"BORROWS", "borrows"}}};

// Returns the states of an origin that need attention; first those that make requests wait.
std::vector<std::string> states_of(const Json& pool) {
  std::vector<std::string> states;
  if (pool.value("draining", false)) {
    states.emplace_back("draining");
  } else if (pool.value("paused", false)) {
    states.emplace_back("paused");
  } else if (pool.value("cooling_down", false)) {
    states.emplace_back("cooling down");
  }
  if (fails(pool)) {
    const Json failing = pool.value("failing", Json());
    const Json reason = failing.is_object() ? failing.value("reason", Json()) : Json();
    states.push_back(reason.is_string() ? "failing (" + reason.get<std::string>() + ")" : "failing");
  }
  if (const auto ejected = pool.value("ejected_addresses", 0U); ejected != 0) {
    states.push_back(std::to_string(ejected) + " ejected");
  }
  return states;
}

// Marks a size that follows the load.
void mark_auto_size(Json& pool) {
  if (pool.value("auto_size", Json(nullptr)).is_object()) pool["size"] = cell(pool.at("size")) + " auto";
}

std::string in_full(const std::vector<std::string>& states) {
  std::string text;
  for (const std::string& state : states) text.append(text.empty() ? "" : ", ").append(state);
  return text;
}

// Returns the first state without its reason, and a plus if there are others.
std::string in_short(const std::vector<std::string>& states) {
  if (states.empty()) return {};
  return states.front().substr(0, states.front().find(" (")) + (states.size() == 1 ? "" : "+");
}

Json with_states(Json pools, std::string (*text)(const std::vector<std::string>&)) {
  for (Json& pool : pools) {
    mark_auto_size(pool);
    const std::string state = text(states_of(pool));
    pool["state"] = state.empty() ? Json(nullptr) : Json(state);
  }
  return pools;
}

std::size_t widest_line(const std::string& table) {
  std::size_t widest = 0;
  for (std::size_t at = 0; at < table.size();) {
    const std::size_t end = table.find('\n', at);
    widest = std::max(widest, width(std::string_view(table).substr(at, end - at)));
    at = end + 1;
  }
  return widest;
}

// Columns: those of a frame, behind ORIGIN.
std::vector<Column> columns_of(std::size_t figures, bool states) {
  std::vector<Column> columns;
  if (states) columns.push_back({"STATE", "state"});
  columns.insert(columns.end(), kTop.begin(), kTop.begin() + static_cast<std::ptrdiff_t>(figures));
  return columns;
}

// Returns the frame with these columns if origins of `least` characters fit beside them, and otherwise an empty text.
std::string frame(const Json& all, std::vector<Column> columns, std::size_t most, std::size_t least) {
  const std::size_t figures = widest_line(picked(all, columns)) + 2;
  const std::size_t room = most > figures ? most - figures : 0;
  if (room < least) return {};
  Json pools = all;
  for (Json& pool : pools) {
    const std::string origin = pool.value("origin", "");
    if (width(origin) > room) pool["origin"] = std::string(clipped(origin, room - 1)) + "+";
  }
  columns.insert(columns.begin(), Column{"ORIGIN", "origin"});
  return picked(pools, columns);
}

}  // namespace

bool fails(const Json& pool) {
  const Json failing = pool.value("failing", Json());
  return failing.is_object() || (!pool.contains("failing") && pool.value("probing", false));
}

std::string pools_table(const Json& pools) {
  return picked(with_states(pools, &in_full), kPool);
}

std::string top_table(const Json& pools, std::size_t columns) {
  std::size_t widest = kOriginHeader;
  bool states = false;
  for (const Json& pool : pools) {
    widest = std::max(widest, width(pool.value("origin", "")));
    states = states || !states_of(pool).empty();
  }
  const std::size_t least = std::min(widest, kShortOrigin);
  const Json full = with_states(pools, &in_full), brief = with_states(pools, &in_short);
  for (std::size_t figures = kTop.size(); figures >= kWithStates; --figures) {
    if (std::string text = frame(full, columns_of(figures, states), columns, least); !text.empty()) return text;
  }
  for (std::size_t figures = kTop.size(); figures > kFewest; --figures) {
    if (std::string text = frame(brief, columns_of(figures, states), columns, least); !text.empty()) return text;
  }
  std::string text = frame(brief, columns_of(kFewest, states), columns, kOriginHeader);
  return text.empty() ? frame(brief, columns_of(kFewest, states), SIZE_MAX, 0) : text;
}

}  // namespace carpool::proxy::cli
