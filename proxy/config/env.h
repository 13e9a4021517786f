// Expands ${NAME}, ${NAME:-default} and ${NAME:?message} in strings, like a shell; $${ is a literal ${.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace carpool::proxy::config {

// Returns true if a well-formed variable of the text has no default, so that the text is known only where it is used.
// An empty default is none: it marks a variable that may be absent.
bool depends_on_environment(std::string_view text);

using Env = std::function<std::optional<std::string>(std::string_view name)>;
Env process_env();

// Returns an error text, or empty. Variable values are not expanded recursively. `too_long` becomes true if the
// variables make the text longer than 64 KiB.
std::string expand(std::string& text, const Env& env, bool& too_long);

}  // namespace carpool::proxy::config
