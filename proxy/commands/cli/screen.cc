#include "proxy/commands/cli/screen.h"

#include "base/repeat_interrupted.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

namespace carpool::proxy::cli {
namespace {

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J";
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";
constexpr std::string_view kLeaves = "qQ\x03";  // the last one is Ctrl-C, which raises no signal in this mode

sigset_t events() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) sigaddset(&set, number);
  return set;
}

// Returns as many characters as fit. Continuation bytes of UTF-8 have no width.
std::string_view cut(std::string_view text, std::size_t columns) {
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    if ((text[at] & 0xC0) != 0x80 && columns-- == 0) break;
  }
  return text.substr(0, at);
}

std::string_view begin(Screen::Style style) {
  switch (style) {
    case Screen::Style::bold:
      return "\x1b[1m";
    case Screen::Style::reverse:
      return "\x1b[7m";
    case Screen::Style::plain:
      break;
  }
  return "";
}

}  // namespace

Screen::Screen(int in, int out) : in_(in), out_(out) {
  const sigset_t set = events();
  sigprocmask(SIG_BLOCK, &set, &mask_before_);
  signals_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC));
  termios keys;
  if (::tcgetattr(in, &keys) == 0) {
    keys_before_ = keys;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
    ::tcsetattr(in, TCSANOW, &keys);
  }
  write(kEnter);
}

Screen::~Screen() {
  write(kLeave);
  if (keys_before_) ::tcsetattr(in_, TCSAFLUSH, &*keys_before_);
  sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

Screen::Size Screen::size() const {
  winsize size{};
  if (::ioctl(out_, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return {24, 80};
  return {size.ws_row, size.ws_col};
}

// The last line has no line break, because that would scroll the screen.
void Screen::draw(const std::vector<Line>& lines) {
  const Size room = size();
  std::string text = "\x1b[H";
  for (std::size_t i = 0; i < std::min(lines.size(), room.rows); ++i) {
    const std::string_view style = begin(lines[i].style);
    text.append(i == 0 ? "" : "\r\n").append(style).append(cut(lines[i].text, room.columns));
    text.append(style.empty() ? "" : "\x1b[m").append("\x1b[K");
  }
  write(text.append("\x1b[J"));
}

Screen::Event Screen::wait(std::chrono::milliseconds most) {
  if (gone_) return Event::leave;
  std::array<pollfd, 2> fds{{{in_, POLLIN, 0}, {signals_.get(), POLLIN, 0}}};
  const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(most.count()));
  if (ready < 0 && errno != EINTR) return Event::leave;
  if (ready <= 0) return Event::time;
  return fds[1].revents != 0 ? signalled() : pressed();
}

Screen::Event Screen::signalled() {
  signalfd_siginfo info;
  const bool read = repeat_interrupted([&] { return ::read(signals_.get(), &info, sizeof info); }) == sizeof info;
  return read && info.ssi_signo == SIGWINCH ? Event::resized : Event::leave;
}

Screen::Event Screen::pressed() {
  std::array<char, 64> keys;
  const ssize_t bytes_read = repeat_interrupted([&] { return ::read(in_, keys.data(), keys.size()); });
  if (bytes_read < 0 && errno == EAGAIN) return Event::key;
  if (bytes_read <= 0 && keys_before_) return Event::leave;  // the terminal hung up
  if (bytes_read <= 0) {
    in_ = -1;  // </dev/null, or a pipe that ended: there are no more keys
    return Event::key;
  }
  const std::string_view bytes(keys.data(), static_cast<std::size_t>(bytes_read));
  // An escape sequence, such as that of an arrow key, whose letters are not keys.
  if (bytes.front() == '\x1b') return Event::key;
  return bytes.find_first_of(kLeaves) == std::string_view::npos ? Event::key : Event::leave;
}

void Screen::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = repeat_interrupted([&] { return ::write(out_, bytes.data(), bytes.size()); });
    if (written <= 0) {
      gone_ = true;
      return;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace carpool::proxy::cli
