#include "proxy/http/connection_options.h"

#include <algorithm>

#include "proxy/http/list_tokens.h"

namespace carpool::proxy::http {

void ConnectionOptions::parse(const Fields& fields) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields.id(i) != FieldName::connection) continue;
    const std::string_view value = fields[i].value;
    bytes += value.size();
    too_many_ = too_many_ || bytes > kMaxBytes;
    if (too_many_) return;
    ListReader list(value);
    for (std::string_view option; list.next(option);) note(option);
  }
}

void ConnectionOptions::note(std::string_view option) {
  if (iequals(option, "keep-alive")) {
    keep_alive = true;
  } else if (iequals(option, "upgrade")) {
    upgrade = true;
  } else if (iequals(option, "te")) {
    te = true;
  } else if (count_ < kMax) {
    close = close || iequals(option, "close");  // it names a field, like any other option (RFC 9110 §7.6.1)
    others_[count_++] = {option.data(), option.size()};
  } else {
    too_many_ = true;
  }
}

bool ConnectionOptions::find(std::string_view name) const {
  return std::any_of(others_.begin(), others_.begin() + count_, [name](const Option& option) {
    return iequals({option.at, option.size}, name);
  });
}

}  // namespace carpool::proxy::http
