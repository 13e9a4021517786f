// environment_of(): the environment variables with which applications trust the authority of a folder.
#pragma once

#include <string>

namespace carpool::proxy {

// `plain`: `NAME=VALUE` lines instead of `export` commands of a POSIX shell. The values contain `dir` unchanged.
std::string environment_of(const std::string& dir, bool plain);

}  // namespace carpool::proxy
