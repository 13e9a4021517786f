// Table: renders JSON for a terminal: lists of objects as tables, objects as lines of "name value".
#pragma once

#include <nlohmann/json.hpp>
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

std::string cell(const Json& value, Unit unit = Unit::none);  // free of control characters
// Renders any JSON value.
std::string shown(const Json& json);
std::string pools_table(const Json& pools);
std::string top_table(const Json& pools);  // pools with "per_second", the most active first
std::string connections_table(const Json& connections);
std::string history_table(const Json& series);  // an object with one list per column, all of equal length

}  // namespace carpool::proxy::cli
