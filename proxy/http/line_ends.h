// Watches the raw bytes of a field section for what parsers disagree about: a lone CR, a lone LF, a folded line.
// Whatever a parser behind it forgives, two readers of the same bytes see the same lines (RFC 9112 §2.2, §5.2).
#pragma once

#include <cstdint>
#include <string_view>

namespace carpool::proxy::http {

class LineEnds {
 public:
  // The bytes in order, in any pieces. nullptr, or what is wrong.
  const char* check(std::string_view bytes);
  std::uint32_t lines() const { return lines_; }  // that were not empty

 private:
  char before_ = '\n';  // a section begins behind a line
  bool empty_ = true;   // nothing on this line yet
  std::uint32_t lines_ = 0;
};

}  // namespace carpool::proxy::http
