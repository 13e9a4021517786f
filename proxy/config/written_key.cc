#include "proxy/config/written_key.h"

#include <algorithm>

namespace carpool::proxy::config {
namespace {

bool bare(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

// Returns the size of the first part of a key, 0 if there is none.
std::size_t part_size(std::string_view text) {
  if (text.empty()) return 0;
  const char quote = text.front();
  if (quote != '"' && quote != '\'') {
    return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), bare) - text.begin());
  }
  std::size_t end = 1;
  while (end < text.size() && text[end] != quote) end += quote == '"' && text[end] == '\\' ? 2 : 1;
  return end < text.size() ? end + 1 : 0;
}

std::string_view without_quotes(std::string_view part) {
  if (bare(part.front())) return part;
  const std::string_view inside = part.substr(1, part.size() - 2);
  return !inside.empty() && std::all_of(inside.begin(), inside.end(), bare) ? inside : part;
}

std::size_t behind_space(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of(" \t", at), text.size());
}

}  // namespace

WrittenKey written_key(std::string_view text, std::size_t last) {
  WrittenKey key;
  for (std::size_t begin = 0;;) {
    const std::size_t size = part_size(text.substr(begin));
    if (size == 0) return key;
    if (begin != 0) key.name += '.';
    key.name.append(without_quotes(text.substr(begin, size)));
    key.size = begin + size;
    const std::size_t dot = behind_space(text, key.size);
    if (begin == last || dot == text.size() || text[dot] != '.') return key;
    begin = behind_space(text, dot + 1);
  }
}

}  // namespace carpool::proxy::config
