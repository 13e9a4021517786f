// Table: renders JSON for a terminal: lists of objects as tables, objects as lines of "name value".
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_bounds.h"
#include "proxy/commands/cli/units.h"

namespace carpool::proxy::cli {

using Json = nlohmann::ordered_json;

// Bounds of a response: 65,535 connections are about two million values.
inline constexpr JsonBounds kResponseBounds{64, 10000000};

class Table {
 public:
  explicit Table(std::vector<std::string> heads) { rows_.push_back(std::move(heads)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::size_t rows() const { return rows_.size() - 1; }
  std::string text() const;  // numbers are right-aligned

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Replaces each character that could control a terminal by `?`.
std::string clean(std::string_view text);
std::string cell(const Json& value, Unit unit = Unit::none);  // free of control characters
// Renders any JSON value.
std::string shown(const Json& json);
// Renders the members `key` of each object of a list; one that it lacks is shown as a dash.
struct Column {
  const char *head, *key;
  Unit unit = Unit::none;
};
std::string picked(const Json& list, std::span<const Column> columns);
// Counts characters, not bytes: continuation bytes of UTF-8 have no width.
std::size_t width(std::string_view text);
std::string connections_table(const Json& connections);
std::string history_table(const Json& series);  // an object with one list per column, all of equal length

}  // namespace carpool::proxy::cli
