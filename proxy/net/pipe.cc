#include "proxy/net/pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/assert.h"
#include "base/repeat_interrupted.h"

namespace carpool::proxy::net {

namespace {
constexpr unsigned kSpliceFlags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;
}  // namespace

std::optional<Pipe> Pipe::open() {
  int ends[2];
  if (::pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) return std::nullopt;
  return Pipe(Fd(ends[0]), Fd(ends[1]));
}

ssize_t Pipe::fill(int socket, std::size_t most) {
  CARPOOL_ASSERT(empty() && most > 0);
  const ssize_t moved =
      repeat_interrupted([&] { return ::splice(socket, nullptr, in_.get(), nullptr, most, kSpliceFlags); });
  if (moved > 0) held_ = static_cast<std::size_t>(moved);
  return moved;
}

ssize_t Pipe::drain(int socket) {
  CARPOOL_ASSERT(!empty());
  const ssize_t moved =
      repeat_interrupted([&] { return ::splice(out_.get(), nullptr, socket, nullptr, held_, kSpliceFlags); });
  if (moved > 0) held_ -= static_cast<std::size_t>(moved);
  return moved;
}

void Pipe::put(std::string_view bytes) {
  const ssize_t copied = repeat_interrupted([&] { return ::write(in_.get(), bytes.data(), bytes.size()); });
  CARPOOL_ASSERT(copied >= 0 && static_cast<std::size_t>(copied) == bytes.size());
  held_ += bytes.size();
}

std::string Pipe::take() {
  std::string bytes(held_, '\0');  // may throw, while the pipe still holds the bytes
  std::size_t taken = 0;
  while (held_ != 0) {
    const ssize_t copied = repeat_interrupted([&] { return ::read(out_.get(), bytes.data() + taken, held_); });
    CARPOOL_ASSERT(copied > 0);
    taken += static_cast<std::size_t>(copied);
    held_ -= static_cast<std::size_t>(copied);
  }
  return bytes;
}

bool cannot_splice(int error) {
  return error == EINVAL || error == ENOSYS || error == EPERM || error == EOPNOTSUPP || error == ENOMEM;
}

}  // namespace carpool::proxy::net
