#include "proxy/http/connection_options.h"

#include "proxy/http/list.h"

namespace carpool::proxy::http {

ConnectionOptions::ConnectionOptions(const Fields& fields) : fields_(fields) {
  if (!fields.may_have(FieldName::connection)) return;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields.id(i) != FieldName::connection) continue;
    ListReader list(fields[i].value);
    for (std::string_view option; list.next(option);) note(option);
  }
}

void ConnectionOptions::note(std::string_view option) {
  if (iequals(option, "keep-alive")) {
    keep_alive = true;
  } else if (iequals(option, "close")) {
    close = true;
  } else if (iequals(option, "upgrade")) {
    upgrade = true;
  } else if (iequals(option, "te")) {
    te = true;
  } else {
    ++others_;
  }
}

bool ConnectionOptions::search(std::string_view name) const {
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (fields_.id(i) != FieldName::connection) continue;
    ListReader list(fields_[i].value);
    for (std::string_view option; list.next(option);) {
      if (iequals(option, name)) return true;
    }
  }
  return false;
}

}  // namespace carpool::proxy::http
