#include "proxy/exchange/priority_class.h"

#include <algorithm>

#include "proxy/http/list_tokens.h"

namespace carpool::proxy {

namespace {
constexpr unsigned kUsual = 3;
constexpr unsigned kUrgencies = 8;
}  // namespace

// Parses a dictionary of structured fields (RFC 8941). The last of several members with one name counts; parameters are
// ignored.
unsigned urgency(std::string_view priority) {
  unsigned found = kUsual;
  http::ListReader members(priority);
  for (std::string_view member; members.next(member);) {
    const std::string_view value = member.substr(0, member.find_first_of("; \t"));
    if (!value.starts_with("u=")) continue;
    const bool digit = value.size() == 3 && value[2] >= '0' && value[2] < '0' + static_cast<char>(kUrgencies);
    found = digit ? static_cast<unsigned>(value[2] - '0') : kUsual;
  }
  return found;
}

std::uint8_t class_of(const std::vector<std::string>& classes, std::string_view named, std::string_view priority) {
  if (classes.size() < 2) return 0;
  const auto own = named.empty() ? classes.end() : std::find(classes.begin(), classes.end(), named);
  if (own != classes.end()) return static_cast<std::uint8_t>(own - classes.begin());
  const std::size_t spread = (urgency(priority) + 1) * classes.size() / kUrgencies;
  return static_cast<std::uint8_t>(std::min(spread, classes.size() - 1));
}

}  // namespace carpool::proxy
