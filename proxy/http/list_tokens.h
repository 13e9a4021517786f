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
  static std::string_view strip(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
  }
  std::string_view rest_;
};

}  // namespace carpool::proxy::http
