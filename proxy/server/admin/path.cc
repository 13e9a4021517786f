#include "proxy/server/admin/path.h"

#include <algorithm>
#include <charconv>

namespace carpool::proxy::admin {
namespace {

std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned char byte = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    const char* const end = text.data() + i + 3;
    if (std::from_chars(text.data() + i + 1, end, byte, 16).ptr != end || byte == 0) return std::nullopt;
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

std::string_view query_of(std::string_view target) {
  const std::size_t mark = target.find('?');
  const std::string_view query = mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
  return query.substr(0, query.find('#'));
}

}  // namespace

std::string_view path_of(std::string_view target) {
  std::string_view path = target.substr(0, target.find_first_of("?#"));
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

bool query_is_well_encoded(std::string_view target) {
  return decoded(query_of(target)).has_value();
}

std::vector<std::pair<std::string_view, std::string_view>> parameters_of(std::string_view target) {
  std::vector<std::pair<std::string_view, std::string_view>> all;
  for (std::string_view query = query_of(target); !query.empty();) {
    const std::string_view one = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(one.size() + 1, query.size()));
    const std::string_view name = one.substr(0, one.find('='));
    all.emplace_back(name, one.substr(std::min(name.size() + 1, one.size())));
  }
  return all;
}

std::optional<std::string> query_value(std::string_view target, std::string_view name) {
  for (const auto& [given, value] : parameters_of(target)) {
    if (given == name) return decoded(value);
  }
  return std::nullopt;
}

std::optional<std::vector<std::string>> segments_of(std::string_view path) {
  std::vector<std::string> segments;
  if (!path.starts_with('/')) return std::nullopt;
  for (path.remove_prefix(1); !path.empty();) {
    const std::size_t slash = path.find('/');
    std::optional<std::string> segment = decoded(path.substr(0, slash));
    if (!segment) return std::nullopt;
    segments.push_back(std::move(*segment));
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  }
  return segments;
}

}  // namespace carpool::proxy::admin
