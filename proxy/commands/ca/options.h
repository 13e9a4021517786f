// The command line of `carpool ca`.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace carpool::proxy {

struct CaOptions {
  enum class Action { help, init, bundle, env };
  Action action = Action::help;
  std::string dir;                 // without a slash at the end
  std::string trust;               // for init and bundle: the folder of applications, which gets no key; empty if none
  std::vector<std::string> hosts;  // canonical, as Origin::host; without duplicates
  int days = 365;
  bool replace = false;
  bool plain = false;  // `NAME=VALUE` lines instead of shell commands
};

// Returns nothing if the first word is not `ca`; otherwise the options or an error text.
std::optional<std::variant<CaOptions, std::string>> parse_ca(int argc, const char* const* argv);

}  // namespace carpool::proxy
