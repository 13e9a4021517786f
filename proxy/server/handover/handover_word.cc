#include "proxy/server/handover/handover_word.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace carpool::proxy {

HandoverWord::Heard HandoverWord::hear(int socket) {
  std::array<char, kGone.size()> piece;
  const std::size_t missing = expected_.size() - heard_.size();
  ssize_t got = 0;
  do {
    got = ::recv(socket, piece.data(), missing, MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return Heard::nothing;
  if (got <= 0) return Heard::left;
  heard_.append(piece.data(), static_cast<std::size_t>(got));
  if (!expected_.starts_with(heard_)) return Heard::other;
  return heard_.size() == expected_.size() ? Heard::word : Heard::nothing;
}

bool say(int socket, std::string_view word) {
  return ::send(socket, word.data(), word.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(word.size());
}

}  // namespace carpool::proxy
