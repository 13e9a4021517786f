#include "proxy/telemetry/log_output.h"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/async_logger.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/sinks/base_sink.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/mutex.h"
#include "proxy/telemetry/log_levels.h"

namespace carpool::proxy::log {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::size_t kQueue = 256;       // messages; a message is a line, or a loop's chunk of access lines
constexpr std::size_t kQueueMargin = 16;  // for loops that check at the same moment
constexpr std::size_t kPiece = 4096;      // PIPE_BUF: after POLLOUT this many bytes are written without blocking

// Counts dropped lines. A mutex is enough: it is only taken on failures.
class Drops {
 public:
  void add(std::size_t lines) {
    const Held lock(mutex_);
    lines_ += lines;
  }
  std::uint64_t lines() const {
    const Held lock(mutex_);
    return lines_;
  }

 private:
  mutable Mutex mutex_;
  std::uint64_t lines_ GUARDED_BY(mutex_) = 0;
};
Drops& drops() {
  static Drops drops;
  return drops;
}

std::size_t lines_in(std::string_view text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// Writes to a descriptor on the writer thread, which waits for a slow reader, but not beyond the end of the program.
class FdSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit FdSink(int fd) : fd_(fd) {
    struct stat about {};
    const bool file = fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
    piece_ = file ? SIZE_MAX : kPiece;
    std::array<char, PATH_MAX> name;
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    const ssize_t length = file ? readlink(link.c_str(), name.data(), name.size()) : 0;
    if (length > 0) path_.assign(name.data(), static_cast<std::size_t>(length));
  }
  bool reopen() const {
    if (path_.empty()) return false;
    const Fd fresh(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
    return fresh && ::dup2(fresh.get(), fd_) == fd_;  // the writer sees the old file or the new one
  }
  bool sync() const { return !path_.empty() && ::fdatasync(fd_) == 0; }
  void finish_by(Steady::time_point deadline) {
    const Held lock(deadline_mutex_);
    deadline_ = deadline;
  }

 private:
  // A line is written completely, or it is counted as dropped and the next one starts on a new line.
  void sink_it_(const spdlog::details::log_msg& msg) override {
    const std::string_view text(msg.payload.data(), msg.payload.size());
    if (torn_ && write_all("\n") == 0) return drops().add(lines_in(text));
    torn_ = false;
    const std::size_t written = write_all(text);
    if (written == text.size()) return;
    drops().add(lines_in(text.substr(written)));
    const std::size_t line_begin = text.substr(0, written).rfind('\n') + 1;  // npos + 1 == 0
    const auto begun = static_cast<off_t>(written - line_begin);
    torn_ = begun != 0 && !take_back(begun);
  }
  void flush_() override {}
  // Returns how many bytes were written; fewer than all if the write fails or the program ends.
  std::size_t write_all(std::string_view text) {
    std::size_t written = 0;
    while (written < text.size()) {
      if (!wait_writable()) break;
      const ssize_t n = ::write(fd_, text.data() + written, std::min(text.size() - written, piece_));
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) break;
      if (n > 0) written += static_cast<std::size_t>(n);
    }
    return written;
  }
  // Removes the last `bytes` of a full file, which are the beginning of a line. Returns false if the log is no file, or
  // another process has written to it since.
  bool take_back(off_t bytes) const {
    const off_t end = path_.empty() ? -1 : ::lseek(fd_, 0, SEEK_CUR);  // after the last byte written
    struct stat about {};
    if (end < bytes || ::fstat(fd_, &about) != 0 || about.st_size != end) return false;
    return ::ftruncate(fd_, end - bytes) == 0 && ::lseek(fd_, end - bytes, SEEK_SET) == end - bytes;
  }
  bool wait_writable() {
    pollfd wanted{fd_, POLLOUT, 0};
    for (bool last = late(); poll(&wanted, 1, last ? 0 : 50) <= 0; last = late()) {
      if (last) return false;
    }
    return (wanted.revents & POLLNVAL) == 0;
  }
  bool late() {
    const Held lock(deadline_mutex_);
    return deadline_ && Steady::now() >= *deadline_;
  }

  const int fd_;
  std::size_t piece_;
  std::string path_;   // empty: no file
  bool torn_ = false;  // the last written line is incomplete
  Mutex deadline_mutex_;
  std::optional<Steady::time_point> deadline_ GUARDED_BY(deadline_mutex_);
};

struct Output {
  explicit Output(const Options& options)
      : format(options.format),
        sink(std::make_shared<FdSink>(options.fd)),
        threads(std::make_shared<spdlog::details::thread_pool>(kQueue, 1)),
        logger(std::make_shared<spdlog::async_logger>("carpool", sink, threads,
                                                      spdlog::async_overflow_policy::overrun_oldest)) {}
  Format format;
  std::shared_ptr<FdSink> sink;
  std::shared_ptr<spdlog::details::thread_pool> threads;
  std::shared_ptr<spdlog::async_logger> logger;
};

// Set by start() before other threads log, read by all.
std::unique_ptr<Output>& output() {
  static std::unique_ptr<Output> output;
  return output;
}

void write_now(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return drops().add(lines_in(text));
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace

bool start(const Options& options) {
  stop();
  try {
    output() = std::make_unique<Output>(options);
  } catch (const std::exception&) {  // spdlog's own, or std::system_error
    return false;
  }
  output()->logger->set_level(spdlog::level::trace);  // telemetry/log_levels.h decides before a line is formatted
  set_level(options.level);
  return true;
}

void stop() {
  if (!output()) return;
  const std::unique_ptr<Output> ending = std::move(output());
  ending->sink->finish_by(Steady::now() + std::chrono::seconds(1));
  ending->logger.reset();
  ending->threads.reset();  // joins the writer
}

bool reopen() {
  return output() && output()->sink->reopen();
}

bool sync() {
  return output() && output()->sink->sync();
}

std::uint64_t dropped() {
  const std::uint64_t overrun = output() ? output()->threads->overrun_counter() : 0;
  return drops().lines() + overrun;
}

Format current_format() {
  return output() ? output()->format : Format::text;
}

void submit(std::string_view text, std::size_t lines) {
  if (text.empty()) return;
  if (!output()) return write_now(text);
  if (output()->threads->queue_size() >= kQueue - kQueueMargin) return drops().add(lines);
  // The line has already passed its level check.
  output()->logger->log(spdlog::level::critical, spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace carpool::proxy::log
