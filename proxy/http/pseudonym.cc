#include "proxy/http/pseudonym.h"

#include <cstdio>
#include <string_view>

namespace carpool::proxy::http {

namespace {
bool contains_word(std::string_view digits) {
  int letters = 0;
  for (const char digit : digits) {
    letters = digit >= 'a' ? letters + 1 : 0;
    if (letters == 3) return true;
  }
  return false;
}
}  // namespace

std::string draw_pseudonym(std::uint32_t (&draw)()) {
  char digits[9];
  do {
    std::snprintf(digits, sizeof digits, "%08x", draw());
  } while (contains_word(digits));
  return std::string("carpool-").append(digits);
}

}  // namespace carpool::proxy::http
