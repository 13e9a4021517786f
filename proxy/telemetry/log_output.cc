#include "proxy/telemetry/log_output.h"

#include <spdlog/async_logger.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

#include "base/mutex.h"
#include "base/repeat_interrupted.h"
#include "proxy/telemetry/log_levels.h"
#include "proxy/telemetry/log_syslog.h"
#include "proxy/telemetry/log_target.h"

namespace carpool::proxy::log {
namespace {

constexpr std::size_t kQueue = 256;       // messages; a message is a line, or a loop's chunk of access lines
constexpr std::size_t kQueueMargin = 16;  // reserve for loops that check at the same moment

// Drops: counts dropped lines. A mutex suffices, because it is taken only on failures.
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

// Returns the severity number that syslog and journald use for a level.
int priority(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::err:
      return 3;
    case spdlog::level::warn:
      return 4;
    case spdlog::level::info:
      return 6;
    default:
      return 7;
  }
}

// Sink: connects spdlog to a Target.
class Sink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit Sink(std::unique_ptr<Target> target) : target_(std::move(target)) {}
  Target& target() const { return *target_; }

 private:
  void sink_it_(const spdlog::details::log_msg& msg) override {
    const std::string_view text(msg.payload.data(), msg.payload.size());
    if (const std::size_t lost = target_->write(text, priority(msg.level)); lost != 0) drops().add(lost);
  }
  void flush_() override {}
  const std::unique_ptr<Target> target_;
};
static_assert(static_cast<int>(Level::trace) == spdlog::level::trace &&
              static_cast<int>(Level::error) == spdlog::level::err);

// Output: a queue, its writer thread and its target.
class Output {
 public:
  explicit Output(std::unique_ptr<Target> target)
      : sink_(std::make_shared<Sink>(std::move(target))),
        threads_(std::make_shared<spdlog::details::thread_pool>(kQueue, 1)),
        logger_(std::make_shared<spdlog::async_logger>("carpool", sink_, threads_,
                                                       spdlog::async_overflow_policy::overrun_oldest)) {
    logger_->set_level(spdlog::level::trace);  // telemetry/log_levels.h decides before a line is formatted
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() {
    logger_.reset();
    threads_.reset();  // joins the writer
  }
  Target& target() const { return sink_->target(); }
  std::uint64_t overrun() const { return threads_->overrun_counter(); }
  void submit(std::string_view text, std::size_t lines, Level level) const {
    if (threads_->queue_size() >= kQueue - kQueueMargin) return drops().add(lines);
    logger_->log(static_cast<spdlog::level::level_enum>(level), spdlog::string_view_t(text.data(), text.size()));
  }

 private:
  std::shared_ptr<Sink> sink_;
  std::shared_ptr<spdlog::details::thread_pool> threads_;
  std::shared_ptr<spdlog::async_logger> logger_;
};

// Outputs: set by start() before other threads log, and read by all threads.
struct Outputs {
  Format format = Format::text;
  std::unique_ptr<Output> main, access;  // no `access`: its lines go to `main`
};
Outputs& outputs() {
  static Outputs outputs;
  return outputs;
}

template <class Act>
void each_target(const Act& act) {
  for (const auto* output : {&outputs().main, &outputs().access}) {
    if (*output) act((*output)->target());
  }
}

// Returns true if there is a file, and `act` succeeds for each.
bool each_file(bool (Target::*act)()) {
  bool file = false, all = true;
  each_target([&](Target& target) {
    if (!target.is_file()) return;
    file = true;
    all = (target.*act)() && all;
  });
  return file && all;
}

void write_now(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = repeat_interrupted([&] { return ::write(STDERR_FILENO, text.data(), text.size()); });
    if (n <= 0) return drops().add(lines_in(text));
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

Result<std::unique_ptr<Target>> main_target(const Options& options) {
  if (!options.syslog.empty()) return syslog_target(options.syslog);
  if (!options.file.empty()) return file_target(options.file);
  return descriptor_target(options.fd);
}

}  // namespace

Status start(const Options& options) {
  stop();
  Result<std::unique_ptr<Target>> main = main_target(options);
  if (!main) return main.take_fault();
  std::unique_ptr<Target> access;
  if (!options.access_file.empty()) {
    Result<std::unique_ptr<Target>> file = file_target(options.access_file);
    if (!file) return file.take_fault();
    access = std::move(*file);
  }
  try {
    outputs().format = options.format;
    outputs().main = std::make_unique<Output>(std::move(*main));
    if (access) outputs().access = std::make_unique<Output>(std::move(access));
  } catch (const std::exception&) {  // from spdlog, or a std::system_error
    stop();
    return Fault{FaultKind::internal, Side::self, "cannot start the log's thread"};
  }
  set_level(options.level);
  return Done{};
}

void stop() {
  if (!outputs().main) return;
  const auto deadline = Target::Steady::now() + std::chrono::seconds(1);
  each_target([deadline](Target& target) { target.finish_by(deadline); });
  const Outputs ending = std::exchange(outputs(), {});
}

bool reopen() {
  return each_file(&Target::reopen);
}

bool sync() {
  return each_file(&Target::sync);
}

std::uint64_t dropped() {
  std::uint64_t overrun = 0;
  for (const auto* output : {&outputs().main, &outputs().access}) {
    if (*output) overrun += (*output)->overrun();
  }
  return drops().lines() + overrun;
}

Format current_format() {
  return outputs().format;
}

void submit(std::string_view text, std::size_t lines, Level level) {
  if (text.empty()) return;
  if (!outputs().main) return write_now(text);
  outputs().main->submit(text, lines, level);
}

void submit_access(std::string_view text, std::size_t lines) {
  if (text.empty()) return;
  if (!outputs().access) return submit(text, lines, Level::info);
  outputs().access->submit(text, lines, Level::info);
}

}  // namespace carpool::proxy::log
