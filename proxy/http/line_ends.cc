#include "proxy/http/line_ends.h"

namespace carpool::proxy::http {

const char* LineEnds::check(std::string_view bytes) {
  while (!bytes.empty()) {
    if (before_ == '\r') {
      if (bytes.front() != '\n') return "a CR without LF";
      lines_ += empty_ ? 0 : 1;
      before_ = '\n';
      empty_ = true;
      bytes.remove_prefix(1);
      continue;
    }
    if (before_ == '\n' && (bytes.front() == ' ' || bytes.front() == '\t')) return "a folded field line";
    const std::size_t cr = bytes.find('\r');
    const std::string_view line = bytes.substr(0, cr);
    if (line.find('\n') != std::string_view::npos) return "a LF without CR";
    if (!line.empty()) {
      before_ = line.back();
      empty_ = false;
    }
    if (cr == std::string_view::npos) return nullptr;
    before_ = '\r';
    bytes.remove_prefix(cr + 1);
  }
  return nullptr;
}

}  // namespace carpool::proxy::http
