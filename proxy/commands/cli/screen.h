// Screen: a terminal in full-screen mode: alternate screen, no cursor, unbuffered keys. The destructor restores the
// terminal however the program ends, because signals that would end it arrive as events.
#pragma once

#include <termios.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"

namespace carpool::proxy::cli {

class Screen {
 public:
  enum class Event : std::uint8_t {
    time,     // the timeout passed
    key,      // a key without a function
    resized,  // the size changed: draw again
    leave,    // q, Ctrl-C, a signal, or the terminal was closed
  };
  enum class Style : std::uint8_t { plain, bold, reverse };
  struct Line {
    std::string text;
    Style style = Style::plain;
  };
  struct Size {
    std::size_t rows, columns;
  };

  Screen(int in, int out);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  Size size() const;
  void draw(const std::vector<Line>& lines);  // truncated to the screen's size
  Event wait(std::chrono::milliseconds most);

 private:
  void write(std::string_view bytes);
  Event signalled();
  Event pressed();

  int in_;  // -1 if there is no keyboard
  const int out_;
  Fd signals_;
  sigset_t mask_before_;
  std::optional<termios> keys_before_;  // empty if it is not a terminal
  bool gone_ = false;
};

}  // namespace carpool::proxy::cli
