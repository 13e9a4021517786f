// HandoverWord: the one word that the other process says on the hand-over socket ("go", "gone"), read from a socket
// that does not block, in as many pieces as it comes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace carpool::proxy {

class HandoverWord {
 public:
  static constexpr std::string_view kGo = "go";      // of the successor: it is ready, the other one may close its doors
  static constexpr std::string_view kGone = "gone";  // of the other one: its doors are closed

  enum class Heard : std::uint8_t {
    nothing,  // or a part of the word: come back on readiness
    word,
    other,  // something else
    left,   // the socket ended or failed
  };
  explicit HandoverWord(std::string_view expected) : expected_(expected) {}

  Heard hear(int socket);

 private:
  std::string_view expected_;
  std::string heard_;  // so far; never longer than the word
};

bool say(int socket, std::string_view word);

}  // namespace carpool::proxy
