#include "proxy/config/check_rules.h"

#include <algorithm>

#include "proxy/config/text.h"

namespace carpool::proxy::config {

void CheckRules::at_most(const std::string& key, std::uint32_t value, const std::string& other, std::uint32_t most) {
  if (value <= most || places_.invalid(key) || places_.invalid(other)) return;
  const std::string shown = places_.given(key) ? key : other;
  error(shown, without_numbers(key) + " = " + std::to_string(value) + " is more than " + without_numbers(other) +
                   " = " + std::to_string(most) + ", expected at most that");
}

void CheckRules::needs(const std::string& prefix, const std::string& one, const char* key, const std::string& other,
                       const char* missing) {
  if (one.empty() || !other.empty() || places_.invalid(prefix + missing)) return;
  error(prefix + key, std::string("is set without ") + missing + ", expected both or none");
}

void CheckRules::listed_once(const std::vector<std::string>& list, const std::string& key, const char* what) {
  for (auto item = list.begin(); item != list.end(); ++item) {
    if (std::find(list.begin(), item, *item) == item) continue;
    return error(item_key(key, static_cast<std::size_t>(item - list.begin())),
                 in_quotes(*item) + " is listed twice, expected each " + what + " once");
  }
}

}  // namespace carpool::proxy::config
