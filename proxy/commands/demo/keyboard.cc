#include "proxy/commands/demo/keyboard.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/repeat_interrupted.h"
#include "proxy/commands/cli/admin_client.h"
#include "proxy/commands/demo/demo_origin.h"
#include "proxy/commands/demo/start_thread.h"

namespace carpool::proxy {
namespace {

constexpr std::size_t kMaxLine = 80;  // only the end of a longer line is kept

// The system stops a background job that reads from its terminal.
bool in_background(int fd) {
  return ::isatty(fd) == 1 && ::tcgetpgrp(fd) != ::getpgrp();
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return text;
}

}  // namespace

Result<std::unique_ptr<Keyboard>> Keyboard::start(int fd, std::FILE* out, DemoOrigin& origin, std::string admin) {
  Result<StopSignal> stop = StopSignal::make();
  if (!stop) return stop.take_fault();
  auto keyboard = std::make_unique<Keyboard>(std::move(*stop), fd, out, origin, std::move(admin));
  Result<std::thread> thread = start_thread("the demo's keyboard", [made = keyboard.get()] { made->run(); });
  if (!thread) return thread.take_fault();
  keyboard->thread_ = std::move(*thread);
  return keyboard;
}

Keyboard::Keyboard(StopSignal stop, int fd, std::FILE* out, DemoOrigin& origin, std::string admin)
    : stop_(std::move(stop)), fd_(fd), out_(out), origin_(origin), admin_(std::move(admin)) {}

Keyboard::~Keyboard() {
  stop_.raise();
  if (thread_.joinable()) thread_.join();
}

void Keyboard::run() {
  for (;;) {
    const bool silent = in_background(fd_);
    std::array<pollfd, 2> polled{{{stop_.fd(), POLLIN, 0}, {silent ? -1 : fd_, POLLIN, 0}}};
    const int ready = ::poll(polled.data(), polled.size(), 1000);  // the job may become the foreground job
    if (ready > 0 && polled[0].revents != 0) return;
    if (ready <= 0 || polled[1].revents == 0 || in_background(fd_)) continue;
    if (!read_some()) return;
  }
}

bool Keyboard::read_some() {
  std::array<char, 256> bytes;
  const ssize_t received = repeat_interrupted([&] { return ::read(fd_, bytes.data(), bytes.size()); });
  if (received < 0 && errno == EAGAIN) return true;
  if (received <= 0) return false;
  line_.append(bytes.data(), static_cast<std::size_t>(received));
  for (std::size_t end = 0; (end = line_.find('\n')) != std::string::npos; line_.erase(0, end + 1)) {
    execute(trimmed(std::string_view(line_).substr(0, end)));
  }
  if (line_.size() > kMaxLine) line_.erase(0, line_.size() - kMaxLine);
  return true;
}

void Keyboard::execute(std::string_view word) {
  if (word.empty()) return;
  if (word == "kill") {
    origin_.kill();
    return print("the origin is dead: its requests fail with 502; `start` brings it back");
  }
  if (word == "start") {
    origin_.revive();
    return print("the origin is back: the next requests open new connections");
  }
  for (const std::string_view known : {"pause", "resume", "drain", "reconnect"}) {
    if (word == known) return command_pools(word);
  }
  print("`" + std::string(word) + "` is none of kill, start, pause, resume, drain, reconnect; Ctrl-C ends the demo");
}

void Keyboard::command_pools(std::string_view word) {
  const std::array<std::string, 3> paths{std::string("http%3A%2F%2F") + DemoOrigin::kPlainName,
                                         std::string("https%3A%2F%2F") + DemoOrigin::kTlsName,
                                         std::string("https%3A%2F%2F") + DemoOrigin::kH2Name};
  for (const std::string& path : paths) {
    const Result<cli::Reply> reply =
        cli::ask(cli::Instance{admin_, {}, 3}, "POST", "/pools/" + path + "/" + std::string(word));
    if (!reply) return print(std::string(word) + ": " + reply.fault().detail);
    if (reply->status >= 400) return print(std::string(word) + ": " + reply->body);
  }
  print(std::string(word) + ": done for all three origins");
}

void Keyboard::print(const std::string& text) {
  std::fprintf(out_, "> %s\n", text.c_str());
  std::fflush(out_);
}

}  // namespace carpool::proxy
