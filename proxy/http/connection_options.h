// What Connection says (RFC 9110 §7.6.1): the options a proxy knows, and the names of fields that end here. The value
// is read once; what is kept of it is bounded.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "proxy/http/message.h"

namespace carpool::proxy::http {

class ConnectionOptions {
 public:
  // `fields` outlives this, and is not changed meanwhile.
  explicit ConnectionOptions(const Fields& fields);

  bool close = false;
  bool keep_alive = false;
  bool upgrade = false;
  bool te = false;
  // Returns true if there are more options, or more bytes of commas and white space, than any sender means; such a head
  // is refused, so that no field costs a search through thousands.
  bool too_many() const { return too_many_; }
  // Is a field of this name, none of the above, meant for this hop only?
  bool lists(std::string_view name) const;

 private:
  static constexpr std::size_t kMost = 64;
  static constexpr std::size_t kMostBytes = 4096;
  struct Option {
    const char* at;
    std::size_t size;
  };
  void note(std::string_view option);
  std::array<Option, kMost> others_;  // the first `count_` of them; no message pays for the others
  std::size_t count_ = 0;
  bool too_many_ = false;
};

}  // namespace carpool::proxy::http
