// The environment in which applications trust the authority of a folder.
#pragma once

#include <string>

namespace carpool::proxy {

// `plain`: `NAME=VALUE` lines, otherwise `export` commands of a POSIX shell. `dir` becomes part of the values as it is.
std::string environment_of(const std::string& dir, bool plain);

}  // namespace carpool::proxy
