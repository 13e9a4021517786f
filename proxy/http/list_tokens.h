// Iterates over a comma-separated list in a field value (RFC 9110 §5.6.1); skips empty members and strips white space.
#pragma once

#include <string_view>

namespace carpool::proxy::http {

class ListReader {
 public:
  explicit ListReader(std::string_view value) : rest_(value) {}

  // Gets the next member that is not empty; returns false at the end.
  bool next(std::string_view& member) {
    while (!rest_.empty()) {
      const std::size_t comma = rest_.find(',');
      member = strip(rest_.substr(0, comma));
      rest_.remove_prefix(comma == std::string_view::npos ? rest_.size() : comma + 1);
      if (!member.empty()) return true;
    }
    return false;
  }

 private:
  static bool white(char c) { return c == ' ' || c == '\t'; }
  static std::string_view strip(std::string_view text) {
    while (!text.empty() && white(text.front())) text.remove_prefix(1);
    while (!text.empty() && white(text.back())) text.remove_suffix(1);
    return text;
  }
  std::string_view rest_;
};

}  // namespace carpool::proxy::http
