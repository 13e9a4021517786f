// Screen: a terminal taken for drawing: its alternate screen, no cursor, keys as they are pressed. Its end gives the
// terminal back as it was, whichever way the program leaves: signals that would end it arrive as events.
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
    time,     // that was given has passed
    key,      // any that has no meaning
    resized,  // draw again
    leave,    // q, Ctrl-C, a signal, or the terminal is gone
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
  void draw(const std::vector<Line>& lines);  // cut to its size
  Event wait(std::chrono::milliseconds most);

 private:
  void write(std::string_view bytes);
  Event signalled();
  Event pressed();

  int in_;  // -1: nobody presses keys there
  const int out_;
  Fd signals_;
  sigset_t mask_before_;
  std::optional<termios> keys_before_;  // none: it is no terminal
  bool gone_ = false;
};

}  // namespace carpool::proxy::cli
