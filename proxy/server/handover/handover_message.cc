#include "proxy/server/handover/handover_message.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "base/repeat_interrupted.h"

namespace carpool::proxy {

HandoverMessage::Received HandoverMessage::receive(int socket) {
  std::array<char, kGone.size()> piece;
  const std::size_t missing = expected_.size() - received_.size();
  if (missing == 0) return Received::other;  // a further call after the word or after something else
  const ssize_t received = repeat_interrupted([&] { return ::recv(socket, piece.data(), missing, MSG_DONTWAIT); });
  if (received < 0 && errno == EAGAIN) return Received::nothing;
  if (received <= 0) return Received::left;
  received_.append(piece.data(), static_cast<std::size_t>(received));
  const bool refused = refusal_.starts_with(received_);
  if (!refused && !expected_.starts_with(received_)) return Received::other;
  if (received_.size() < expected_.size()) return Received::nothing;
  return refused ? Received::late : Received::word;
}

bool send_word(int socket, std::string_view& word) {
  while (!word.empty()) {
    const ssize_t sent = repeat_interrupted([&] { return ::send(socket, word.data(), word.size(), MSG_NOSIGNAL); });
    if (sent < 0) return false;
    word.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

}  // namespace carpool::proxy
