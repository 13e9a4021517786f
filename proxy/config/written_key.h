// written_key(): the key at the beginning of a piece of TOML, in one spelling: without spaces around its dots, and
// without quotes where it needs none. For the errors about a file that the parser cannot read.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace carpool::proxy::config {

struct WrittenKey {
  std::string name;      // empty: the text begins with no key
  std::size_t size = 0;  // in the text
};

// A dotted key is read to its end, but not beyond the part that begins at `last`.
WrittenKey written_key(std::string_view text, std::size_t last = std::string_view::npos);

}  // namespace carpool::proxy::config
