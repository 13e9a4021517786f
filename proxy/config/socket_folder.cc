#include "proxy/config/socket_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "proxy/config/read.h"

namespace carpool::proxy::config {
namespace {

constexpr std::string_view kWritable = ", expected a folder that exists and that carpool may write";

struct Finding {
  std::string text;  // empty: nothing is wrong
  bool may_change = false;
};

// A service manager may make the folder at the start, and another user may run the check: that is only a warning.
Finding finding_of(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode)) {
    return {path + " exists and is not a socket, expected a path that carpool may create"};
  }
  const std::size_t slash = path.rfind('/');  // the path is absolute
  const std::string folder = slash == 0 ? "/" : path.substr(0, slash);
  if (::stat(folder.c_str(), &status) == 0 && !S_ISDIR(status.st_mode)) {
    return {folder + " is not a folder" + std::string(kWritable)};
  }
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return {folder + " cannot be written: " + std::generic_category().message(errno) + std::string(kWritable), true};
}

}  // namespace

void check_sockets(Reading& reading) {
  for (const NamedFile& named : reading.sockets) {
    Finding found = finding_of(named.path);
    if (found.text.empty()) continue;
    auto& list = found.may_change ? reading.warnings : reading.errors;
    list.push_back(named.place);
    list.back().text = std::move(found.text);
  }
}

}  // namespace carpool::proxy::config
