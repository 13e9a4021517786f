#include "proxy/commands/libraries.h"

#include <ares.h>
#include <fmt/core.h>
#include <idn2.h>
#include <llhttp.h>
#include <nghttp2/nghttp2.h>
#include <openssl/crypto.h>
#include <spdlog/version.h>
#include <toml++/impl/version.h>
#include <uv.h>
#include <zlib.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "proxy/config/options.h"

namespace carpool::proxy {
namespace {

template <class... Numbers>
std::string dotted(int first, Numbers... more) {
  std::string text = std::to_string(first);
  (text.append(1, '.').append(std::to_string(more)), ...);
  return text;
}

}  // namespace

std::vector<Library> libraries() {
  constexpr int kMajor = 10000, kMinor = 100;  // digits of fmt's version number
  return {
      {"OpenSSL", OpenSSL_version(OPENSSL_VERSION_STRING)},
      {"libuv", uv_version_string()},
      {"nghttp2", nghttp2_version(0)->version_str},
      {"c-ares", ares_version(nullptr)},
      {"llhttp", dotted(LLHTTP_VERSION_MAJOR, LLHTTP_VERSION_MINOR, LLHTTP_VERSION_PATCH)},
      {"zlib", zlibVersion()},
      {"libidn2", idn2_check_version(nullptr)},
      {"spdlog", dotted(SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR, SPDLOG_VER_PATCH)},
      {"fmt", dotted(FMT_VERSION / kMajor, FMT_VERSION / kMinor % kMinor, FMT_VERSION % kMinor)},
      {"toml++", dotted(TOML_LIB_MAJOR, TOML_LIB_MINOR, TOML_LIB_PATCH)},
      {"nlohmann-json", dotted(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)},
  };
}

void print_version(std::ostream& out, std::string_view revision) {
  out << "carpool " << config::version();
  if (!revision.empty()) out << " (" << revision << ')';
  out << "\ncompiler " << __VERSION__ << '\n';
  for (const Library& library : libraries()) out << library.name << ' ' << library.version << '\n';
}

}  // namespace carpool::proxy
