// Target: the destination of log lines: a descriptor, a file, or the socket of a syslog daemon. One writer thread
// writes; it waits for a slow reader, but not beyond the end of the program.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/result.h"

namespace carpool::proxy::log {

class Target {
 public:
  using Steady = std::chrono::steady_clock;

  Target() = default;
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  virtual ~Target() = default;

  // Writes complete lines of one priority, as syslog numbers it (3 error to 7 debug). Each line is written completely
  // or not at all. Returns the number of lines that were not written.
  virtual std::size_t write(std::string_view text, int priority) = 0;
  // Any thread.
  virtual bool is_file() const { return false; }
  virtual bool reopen() { return false; }
  virtual bool sync() { return false; }
  void finish_by(Steady::time_point deadline);

 protected:
  bool wait_writable(int fd);  // returns false if `fd` is not open, or the program ends

 private:
  bool late();
  Mutex deadline_mutex_;
  std::optional<Steady::time_point> deadline_ GUARDED_BY(deadline_mutex_);
};

std::size_t lines_in(std::string_view text);

// `fd` belongs to the caller. If it is systemd's stream to the journal ($JOURNAL_STREAM), each line begins with its
// priority.
std::unique_ptr<Target> descriptor_target(int fd);
Result<std::unique_ptr<Target>> file_target(const std::string& path);

}  // namespace carpool::proxy::log
