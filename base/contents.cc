#include "base/contents.h"

#include <unistd.h>

#include <cerrno>

#include "base/open_to_read.h"
#include "base/repeat_interrupted.h"

namespace carpool {

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
    const ssize_t bytes_read = repeat_interrupted([&] { return ::read(file.get(), text.data() + before, kPiece); });
    text.resize(before + (bytes_read > 0 ? static_cast<std::size_t>(bytes_read) : 0));
    if (bytes_read < 0) return file_fault(errno);
    if (bytes_read == 0) return text;
    if (text.size() > most) {
      return Fault{FaultKind::body_too_large, Side::self, "it is longer than " + std::to_string(most) + " bytes"};
    }
  }
}

std::optional<std::size_t> read_into(int file, std::span<char> memory) {
  std::size_t size = 0;
  while (size < memory.size()) {
    const ssize_t bytes_read =
        repeat_interrupted([&] { return ::read(file, memory.data() + size, memory.size() - size); });
    if (bytes_read < 0) return std::nullopt;
    if (bytes_read == 0) break;
    size += static_cast<std::size_t>(bytes_read);
  }
  return size;
}

}  // namespace carpool
