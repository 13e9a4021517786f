// environment_of(): the environment variables with which applications trust the authority of a folder.
#pragma once

#include <string>
#include <string_view>

namespace carpool::proxy {

// The files of the folder that the environment names.
inline constexpr std::string_view kAuthorityFile = "/ca.pem", kBundleFile = "/bundle.pem",
                                  kJavaBundleFile = "/bundle.p12";

// `plain`: `NAME=VALUE` lines instead of `export` commands of a POSIX shell. The values contain `dir` unchanged.
std::string environment_of(const std::string& dir, bool plain);

}  // namespace carpool::proxy
