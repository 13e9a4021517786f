#include "proxy/telemetry/log_target.h"

#include "base/repeat_interrupted.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace carpool::proxy::log {
namespace {

constexpr std::size_t kPiece = 4096;  // PIPE_BUF: after POLLOUT a write of this size does not block

// Does not wait for the reader of a FIFO. Later writes wait until poll() reports space.
Fd open_file(const std::string& path) {
  Fd file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644));
  if (file) ::fcntl(file.get(), F_SETFL, O_APPEND);
  return file;
}

std::string why_not_opened(int error) {
  return error == ENXIO ? "no process reads it" : std::generic_category().message(error);
}

// systemd passes the device and inode of the stream that it connected, so that a redirected stream is not mistaken for
// it.
bool is_journal(const struct stat& about) {
  const char* const named = std::getenv("JOURNAL_STREAM");
  unsigned long long device = 0, inode = 0;
  return named != nullptr && std::sscanf(named, "%llu:%llu", &device, &inode) == 2 && about.st_dev == device &&
         about.st_ino == inode;
}

class StreamTarget final : public Target {
 public:
  explicit StreamTarget(int fd) : fd_(fd) {
    struct stat about {};
    const bool known = fstat(fd, &about) == 0;
    const bool file = known && S_ISREG(about.st_mode);
    journal_ = known && is_journal(about);
    piece_ = file ? SIZE_MAX : kPiece;
    std::array<char, PATH_MAX> name;
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    const ssize_t length = file ? readlink(link.c_str(), name.data(), name.size()) : 0;
    if (length > 0) path_.assign(name.data(), static_cast<std::size_t>(length));
  }
  StreamTarget(Fd own, std::string path) : own_(std::move(own)), fd_(own_.get()), path_(std::move(path)) {
    struct stat about {};
    piece_ = fstat(fd_, &about) == 0 && S_ISREG(about.st_mode) ? SIZE_MAX : kPiece;
  }

  std::size_t write(std::string_view text, int priority) override {
    if (!journal_) return write_lines(text);
    const std::string before = "<" + std::to_string(priority) + ">";
    numbered_.clear();
    while (!text.empty()) {
      const std::size_t size = std::min(text.find('\n'), text.size() - 1) + 1;
      numbered_.append(before).append(text.substr(0, size));
      text.remove_prefix(size);
    }
    return write_lines(numbered_);
  }
  bool is_file() const override { return !path_.empty(); }
  bool reopen() override {
    if (path_.empty()) return false;
    const Fd fresh = open_file(path_);
    return fresh &&
           ::dup3(fresh.get(), fd_, own_ ? O_CLOEXEC : 0) == fd_;  // the writer uses the old file or the new one
  }
  bool sync() override { return !path_.empty() && ::fdatasync(fd_) == 0; }

 private:
  // Returns the number of lines that were not written. After a partial line that could not be removed, the next line
  // starts on a line of its own.
  std::size_t write_lines(std::string_view text) {
    if (torn_ && write_all("\n") == 0) return lines_in(text);
    torn_ = false;
    const std::size_t written = write_all(text);
    if (written == text.size()) return 0;
    const std::size_t line_begin = text.substr(0, written).rfind('\n') + 1;  // npos + 1 == 0
    const auto begun = static_cast<off_t>(written - line_begin);
    torn_ = begun != 0 && !truncate_by(begun);
    return lines_in(text.substr(written));
  }
  // Returns the number of bytes written, which is less than all if a write fails or the program ends.
  std::size_t write_all(std::string_view text) {
    std::size_t written = 0;
    while (written < text.size()) {
      if (!wait_writable(fd_)) break;
      const ssize_t n = repeat_interrupted(
          [&] { return ::write(fd_, text.data() + written, std::min(text.size() - written, piece_)); });
      if (n == 0 || (n < 0 && errno != EAGAIN)) break;
      if (n > 0) written += static_cast<std::size_t>(n);
    }
    return written;
  }
  // Removes the last `bytes`, an incomplete line, from a file on a full disk. Returns false if the log is not a file,
  // or if another process has written to it since.
  bool truncate_by(off_t bytes) const {
    const off_t end = path_.empty() ? -1 : ::lseek(fd_, 0, SEEK_CUR);  // after the last byte written
    struct stat about {};
    if (end < bytes || ::fstat(fd_, &about) != 0 || about.st_size != end) return false;
    return ::ftruncate(fd_, end - bytes) == 0 && ::lseek(fd_, end - bytes, SEEK_SET) == end - bytes;
  }

  const Fd own_;  // empty: the caller owns the descriptor
  const int fd_;
  std::size_t piece_;
  bool journal_ = false;
  std::string path_;      // empty: not a file
  std::string numbered_;  // lines with their priority in front
  bool torn_ = false;     // the last written line is incomplete
};

}  // namespace

std::size_t lines_in(std::string_view text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

void Target::finish_by(Steady::time_point deadline) {
  const Held lock(deadline_mutex_);
  deadline_ = deadline;
}

bool Target::wait_writable(int fd) {
  pollfd wanted{fd, POLLOUT, 0};
  for (bool last = late(); poll(&wanted, 1, last ? 0 : 50) <= 0; last = late()) {
    if (last) return false;
  }
  return (wanted.revents & POLLNVAL) == 0;
}

bool Target::late() {
  const Held lock(deadline_mutex_);
  return deadline_ && Steady::now() >= *deadline_;
}

std::unique_ptr<Target> descriptor_target(int fd) {
  return std::make_unique<StreamTarget>(fd);
}

Result<std::unique_ptr<Target>> file_target(const std::string& path) {
  Fd fd = open_file(path);
  if (!fd) {
    return Fault{FaultKind::unroutable, Side::self, "cannot open the log file " + path + ": " + why_not_opened(errno)};
  }
  return std::unique_ptr<Target>(std::make_unique<StreamTarget>(std::move(fd), path));
}

}  // namespace carpool::proxy::log
