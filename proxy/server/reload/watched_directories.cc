#include "proxy/server/reload/watched_directories.h"

#include <deque>
#include <filesystem>
#include <system_error>

namespace carpool::proxy {

namespace {
namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;  // as in the kernel

void follow(const fs::path& file, WatchedDirectories& all) {
  fs::path at = file.is_absolute() ? "/" : ".";
  std::deque<fs::path> rest;
  const auto prepend = [&rest](const fs::path& path) {
    const fs::path relative = path.relative_path();
    rest.insert(rest.begin(), relative.begin(), relative.end());
  };
  prepend(file);
  for (int links = 0; !rest.empty();) {
    const fs::path next = at / rest.front();
    rest.pop_front();
    std::error_code error;
    const fs::file_status status = fs::symlink_status(next, error);
    const bool link = fs::is_symlink(status) && ++links <= kMaxLinks;
    const bool last = rest.empty() || !fs::exists(status);
    DirectoryEvents& events = all.emplace(at.string(), DirectoryEvents::self).first->second;
    if (link || last) events = DirectoryEvents::entries;
    if (link) {
      const fs::path target = fs::read_symlink(next, error);
      prepend(target);
      if (target.is_absolute()) at = "/";
    } else if (last) {
      return;
    } else {
      at = next;
    }
  }
}
}  // namespace

WatchedDirectories watched_directories(const std::vector<std::string>& files) {
  WatchedDirectories all;
  for (const std::string& file : files) follow(file, all);
  return all;
}

}  // namespace carpool::proxy
