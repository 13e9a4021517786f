#include "proxy/commands/demo/temporary_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/fd.h"
#include "base/repeat_interrupted.h"

namespace carpool::proxy {
namespace {

constexpr std::string_view kSuffix = ".pem";

Fault cannot(const std::string& what) {
  return {FaultKind::internal, Side::self, what + ": " + std::generic_category().message(errno)};
}

}  // namespace

Result<TemporaryFile> TemporaryFile::make(std::string_view stem, std::string_view contents) {
  const char* directory = std::getenv("TMPDIR");
  std::string path = directory != nullptr && *directory != '\0' ? directory : "/tmp";
  path.append("/").append(stem).append("-XXXXXX").append(kSuffix);
  const Fd fd(::mkostemps(path.data(), static_cast<int>(kSuffix.size()), O_CLOEXEC));
  if (!fd) return cannot("create " + path);
  TemporaryFile file(path);
  while (!contents.empty()) {
    const ssize_t written = repeat_interrupted([&] { return ::write(fd.get(), contents.data(), contents.size()); });
    if (written <= 0) return cannot("write " + path);
    contents.remove_prefix(static_cast<std::size_t>(written));
  }
  return file;
}

TemporaryFile::~TemporaryFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

}  // namespace carpool::proxy
