// ConfigError: one error in a configuration file, and its position. Places records the position of each key, so that a
// check that compares two settings can report the one that was written.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "proxy/config/text.h"

namespace carpool::proxy::config {

struct ConfigError {
  std::string file;
  unsigned line = 1, column = 1;
  std::string key;   // "pool.size", or another subject: "syntax", "file"
  std::string text;  // the error and the expected value

  // Returns "FILE:LINE:COLUMN: KEY: error, expected value".
  std::string line_text() const {
    return visible(file) + ':' + std::to_string(line) + ':' + std::to_string(column) + ": " + visible(key) + ": " +
           visible(text);
  }
};

inline void sort_by_place(std::vector<ConfigError>& errors) {
  std::stable_sort(errors.begin(), errors.end(), [](const ConfigError& a, const ConfigError& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
}

// Bounds the errors: an external text may have any number of them, each as long as its keys, so only the first ones are
// reported, shortened. Returns true if there are more.
inline constexpr std::size_t kMaxErrors = 100;
inline bool bound(std::vector<ConfigError>& errors) {
  constexpr std::size_t kMaxKey = 200, kMaxText = 1000;
  const bool more = errors.size() > kMaxErrors;
  if (more) {
    errors.resize(kMaxErrors);
    const ConfigError& last = errors.back();
    errors.push_back({last.file, last.line, last.column, "file", "has more errors, expected none"});
  }
  for (ConfigError& error : errors) {
    if (error.key.size() > kMaxKey) error.key = std::string(clipped(error.key, kMaxKey)) + "…";
    if (error.text.size() > kMaxText) error.text = std::string(clipped(error.text, kMaxText)) + "…";
  }
  return more;
}

struct Place {
  unsigned line = 1, column = 1;
  bool invalid = false;  // already reported: the value read is not the one written
};

// Keys here contain indices, "origin[2].pool.size", so that each is unique.
class Places {
 public:
  void add(std::string key, Place place) { places_.insert_or_assign(std::move(key), place); }
  // Returns true if the key was written and its value is valid.
  bool given(std::string_view key) const {
    const auto found = places_.find(key);
    return found != places_.end() && !found->second.invalid;
  }
  bool invalid(std::string_view key) const {
    const auto found = places_.find(key);
    return found != places_.end() && found->second.invalid;
  }
  // Returns the place of the key, else of its list or table, else the start of the file.
  Place of(std::string_view key) const {
    for (;;) {
      if (const auto found = places_.find(key); found != places_.end()) return found->second;
      const auto end = key.find_last_of(".[");
      if (end == std::string_view::npos) return {};
      key = key.substr(0, end);
    }
  }

 private:
  std::map<std::string, Place, std::less<>> places_;
};

// Returns "origin[2].alias[1]" for "origin[2].alias", 1; indices begin at 0.
inline std::string item_key(std::string_view list, std::size_t index) {
  return std::string(list).append(1, '[').append(std::to_string(index)).append(1, ']');
}

// Returns "origin.pool.size" for "origin[2].pool.size": the key as used in messages.
inline std::string without_numbers(std::string_view key) {
  std::string out;
  bool inside = false;
  for (const char c : key) {
    if (c == '[') inside = true;
    if (!inside) out += c;
    if (c == ']') inside = false;
  }
  return out;
}

}  // namespace carpool::proxy::config
