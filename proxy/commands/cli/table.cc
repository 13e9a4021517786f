#include "proxy/commands/cli/table.h"

#include <algorithm>
#include <array>

namespace carpool::proxy::cli {

// U+0080 to U+009F control a terminal, too: one of them begins a sequence as ESC [ does.
std::string clean(std::string_view text) {
  const auto byte = [text](std::size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U; };
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool wide = byte(at) == 0xC2 && byte(at + 1) >= 0x80 && byte(at + 1) < 0xA0;
    const bool control = wide || byte(at) < 0x20 || byte(at) == 0x7F;
    out += control ? '?' : text[at];
    at += wide ? 1 : 0;
  }
  return out;
}

namespace {

std::string upper(std::string_view text) {
  std::string out;
  for (const char c : text) out += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

std::string of_objects(const Json& list) {
  std::vector<std::string> heads;
  std::vector<std::string> names;
  for (const auto& [name, value] : list.front().items()) {
    heads.push_back(upper(clean(titled(name).title)));
    names.push_back(name);
  }
  Table table(heads);
  for (const Json& item : list) {
    std::vector<std::string> row;
    row.reserve(names.size());
    for (const std::string& name : names)
      row.push_back(item.contains(name) ? cell(item.at(name), titled(name).unit) : "-");
    table.add(std::move(row));
  }
  return table.text();
}

bool is_list_of_objects(const Json& json) {
  return json.is_array() && !json.empty() &&
         std::all_of(json.begin(), json.end(), [](const Json& item) { return item.is_object(); });
}

bool is_line(const Json& value) {
  return !value.is_structured() || value.empty();
}

// The members of some objects have a unit that their own names do not end in: that of the object's name, or bytes.
Unit unit_in(std::string_view object, const Titled& member) {
  if (member.unit != Unit::none) return member.unit;
  return object == "memory" || object == "heap" ? Unit::bytes : titled(object).unit;
}

std::string indented(const std::string& lines, const std::string& indent) {
  std::string out;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = lines.find('\n', at) + 1;
    out.append(indent).append(lines, at, end - at);
    at = end;
  }
  return out;
}

// `parent`: the name of the member whose value is `json`.
void show(const Json& json, std::string_view parent, const std::string& indent, std::string& out) {
  std::size_t widest = 0;
  for (const auto& [name, value] : json.items()) {
    if (json.is_object() && is_line(value)) widest = std::max(widest, width(titled(name).title));
  }
  for (const auto& [name, value] : json.items()) {
    const Titled title = json.is_object() ? titled(name) : Titled{"-"};
    const std::string shown = clean(title.title);
    out.append(indent).append(shown);
    if (is_list_of_objects(value)) {
      out.append("\n").append(indented(of_objects(value), indent + "  "));
    } else if (!is_line(value)) {
      out += '\n';
      show(value, name, indent + "  ", out);
    } else {
      out.append(widest > width(shown) ? widest - width(shown) : 0, ' ').append("  ");
      out.append(cell(value, unit_in(parent, title))).append(1, '\n');
    }
  }
}

constexpr std::array<Column, 8> kHistory{{{"AGO", "ago_seconds", Unit::seconds},
                                          {"REQUESTS", "requests_per_second", Unit::per_second},
                                          {"FAILED", "failed_per_second", Unit::per_second},
                                          {"P50", "p50_seconds", Unit::seconds},
                                          {"P99", "p99_seconds", Unit::seconds},
                                          {"WAITING", "waiting"},
                                          {"BUSY", "busy"},
                                          {"OPEN", "open"}}};
constexpr std::array<Column, 10> kConnection{{{"ID", "id"},
                                              {"STATE", "state"},
                                              {"OPENED", "opened"},
                                              {"AGE", "age_seconds", Unit::seconds},
                                              {"IDLE", "idle_seconds", Unit::seconds},
                                              {"USES", "uses"},
                                              {"PROTO", "protocol"},
                                              {"LOOP", "loop"},
                                              {"PEER", "peer"},
                                              {"BORROWER", "borrower"}}};

}  // namespace

std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string picked(const Json& list, std::span<const Column> columns) {
  std::vector<std::string> heads;
  heads.reserve(columns.size());
  for (const Column& column : columns) heads.emplace_back(column.head);
  Table table(std::move(heads));
  for (const Json& item : list) {
    std::vector<std::string> row;
    row.reserve(columns.size());
    for (const Column& column : columns)
      row.push_back(item.contains(column.key) ? cell(item.at(column.key), column.unit) : "-");
    table.add(std::move(row));
  }
  return table.rows() == 0 ? "none\n" : table.text();
}

std::string Table::text() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  std::vector<bool> right(widths.size(), rows() > 0);
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], width(rows_[r][i]));
      if (r > 0 && !numeric(rows_[r][i])) right[i] = false;
    }
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::string gap(widths[i] - width(row[i]), ' ');
      line.append(i == 0 ? "" : "  ").append(right[i] ? gap + row[i] : row[i] + gap);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out.append(line).append("\n");
  }
  return out;
}

std::string cell(const Json& value, Unit unit) {
  if (value.is_number() && unit != Unit::none) return with_unit(value.get<double>(), unit);
  if (value.is_null()) return "-";
  if (value.is_string()) return clean(value.get<std::string>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_structured() && value.empty()) return "none";
  if (value.is_number_float()) return with_unit(value.get<double>(), Unit::none);
  return clean(json_text(value));
}

std::string shown(const Json& json) {
  if (is_list_of_objects(json)) return of_objects(json);
  std::string out;
  if (json.is_structured()) {
    show(json, "", "", out);
  } else {
    out = cell(json) + "\n";
  }
  return out;
}

std::string connections_table(const Json& connections) {
  return picked(connections, kConnection);
}

std::string history_table(const Json& series) {
  Json points = Json::array();
  for (const Column& column : kHistory) {
    std::size_t at = 0;
    for (const Json& value : series.value(column.key, Json::array())) points[at++][column.key] = value;
  }
  return picked(points, kHistory);
}

}  // namespace carpool::proxy::cli
