// Checks the raw bytes of a field section for what parsers interpret differently: a bare CR, a bare LF, a folded line.
// Whatever the parser itself tolerates, any two recipients then see the same lines (RFC 9112 §2.2, §5.2).
#pragma once

#include <cstdint>
#include <string_view>

namespace carpool::proxy::http {

class LineEnds {
 public:
  // Checks the next bytes, in any split. Returns nullptr, or an error text.
  const char* check(std::string_view bytes);
  std::uint32_t lines() const { return lines_; }  // without empty ones

 private:
  void end_line();
  char before_ = '\n';  // a section starts after a line end
  bool empty_ = true;   // the current line has no bytes yet
  std::uint32_t lines_ = 0;
};

}  // namespace carpool::proxy::http
