#include "proxy/config/find_config.h"

#include <unistd.h>

#include "base/contents.h"
#include "proxy/config/read_foreign.h"

namespace carpool::proxy::config {
namespace {

constexpr std::size_t kMaxFile = std::size_t{16} * 1024 * 1024;  // as read_file() reads
constexpr const char* kOwn = "carpool.toml";
constexpr const char* kShared = "config.toml";
constexpr const char* kSystem = "/etc/carpool/config.toml";

// A file that exists but cannot be read is an error, not a reason to take another one.
bool exists(const char* path) {
  return ::access(path, F_OK) == 0;
}

bool of_another_program(const char* path) {
  const Result<std::string> text = contents(path, kMaxFile);
  return text && foreign(*text);
}

ConfigError warning(const char* text) {
  return {kShared, 1, 1, "file", text};
}

}  // namespace

FoundConfig choose_config_file(const std::string& given) {
  if (!given.empty()) return {given, std::nullopt};
  if (exists(kOwn)) return {kOwn, std::nullopt};
  FoundConfig found{exists(kSystem) ? kSystem : "", std::nullopt};
  if (!exists(kShared)) return found;
  if (of_another_program(kShared)) {
    found.warning = warning("is not read, because none of its keys is carpool's, expected carpool.toml or --config");
    return found;
  }
  return {kShared, warning("is read from the working directory, where other programs use the same name, expected "
                           "carpool.toml or --config")};
}

}  // namespace carpool::proxy::config
