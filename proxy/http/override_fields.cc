#include "proxy/http/override_fields.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"

namespace carpool::proxy::http {

namespace {
constexpr std::array<std::string_view, 3> kMethodFields = {"x-http-method-override", "x-method-override",
                                                           "x-http-method"};
constexpr std::array<std::string_view, 2> kPathFields = {"x-original-url", "x-rewrite-url"};

bool same_name(char a, char b) {
  return (a == '_' ? '-' : ascii_lower(a)) == b;
}

bool is_one_of(std::string_view name, const auto& known) {
  return std::any_of(known.begin(), known.end(), [&](std::string_view one) {
    return std::equal(name.begin(), name.end(), one.begin(), one.end(), same_name);
  });
}

std::string in_capitals(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return out;
}
}  // namespace

Overrides overrides_of(const Fields& fields) {
  Overrides found;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto [name, value, id] = fields[i];
    if (value.empty() || ascii_lower(name.front()) != 'x') continue;
    if (is_one_of(name, kMethodFields)) {
      std::string method = in_capitals(value);
      found.differ = found.differ || (!found.method.empty() && found.method != method);
      found.method = std::move(method);
    } else if (is_one_of(name, kPathFields)) {
      found.differ = found.differ || (!found.path.empty() && found.path != value);
      found.path = value;
    }
  }
  return found;
}

}  // namespace carpool::proxy::http
