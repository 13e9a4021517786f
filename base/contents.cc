#include "base/contents.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/open_to_read.h"

namespace carpool {

namespace {
Fault failed(std::string why) {
  return {FaultKind::malformed_request, Side::self, std::move(why)};
}
}  // namespace

Result<std::string> contents(const std::string& path, std::size_t most) {
  return contents(open_to_read(path), most);
}

Result<std::string> contents(const Result<Fd>& opened, std::size_t most) {
  if (!opened) return opened.fault();
  const Fd& file = *opened;
  constexpr std::size_t kPiece = std::size_t{64} * 1024;
  std::string text;
  for (;;) {
    const std::size_t before = text.size();
    text.resize(before + kPiece);
    const ssize_t bytes_read = ::read(file.get(), text.data() + before, kPiece);
    text.resize(before + (bytes_read > 0 ? static_cast<std::size_t>(bytes_read) : 0));
    if (bytes_read < 0 && errno == EINTR) continue;
    if (bytes_read < 0) return failed(std::generic_category().message(errno));
    if (bytes_read == 0) return text;
    if (text.size() > most) {
      return Fault{FaultKind::body_too_large, Side::self, "it is longer than " + std::to_string(most) + " bytes"};
    }
  }
}

}  // namespace carpool
