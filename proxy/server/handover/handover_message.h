// HandoverMessage: reads the single word that the other process sends on the hand-over socket ("go", "gone", "late")
// from a non-blocking socket, in any number of pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace carpool::proxy {

class HandoverMessage {
 public:
  static constexpr std::string_view kGo = "go";      // from the successor: it is ready, close the listeners
  static constexpr std::string_view kGone = "gone";  // from the old process: its listeners are closed
  static constexpr std::string_view kLate = "late";  // from the old process: another process takes over instead

  enum class Received : std::uint8_t {
    nothing,  // no input, or part of the word: call again on readiness
    word,
    late,   // the refusal
    other,  // anything else
    left,   // the socket was closed or failed
  };
  // `refusal`: a word that may come instead, as long as the expected one.
  explicit HandoverMessage(std::string_view expected, std::string_view refusal = {})
      : expected_(expected), refusal_(refusal) {}

  Received receive(int socket);

 private:
  std::string_view expected_, refusal_;
  std::string received_;  // received so far; never longer than the word
};

// Sends a word. Returns false if the socket did not accept all of it (errno); `word` is then the unsent part.
bool send_word(int socket, std::string_view& word);

}  // namespace carpool::proxy
