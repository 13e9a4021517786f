// What Connection says (RFC 9110 §7.6.1): the options a proxy knows, and the names of fields that end here.
#pragma once

#include <cstddef>
#include <string_view>

#include "proxy/http/message.h"

namespace carpool::proxy::http {

class ConnectionOptions {
 public:
  // `fields` outlives this.
  explicit ConnectionOptions(const Fields& fields);

  bool close = false;
  bool keep_alive = false;
  bool upgrade = false;
  bool te = false;
  // More options than any sender means; such a head is refused, so that no field costs a search through thousands.
  bool too_many() const { return others_ > kMost; }
  // Is a field of this name, none of the above, meant for this hop only?
  bool lists(std::string_view name) const { return others_ != 0 && search(name); }

 private:
  static constexpr std::size_t kMost = 64;
  void note(std::string_view option);
  bool search(std::string_view name) const;
  const Fields& fields_;
  std::size_t others_ = 0;
};

}  // namespace carpool::proxy::http
