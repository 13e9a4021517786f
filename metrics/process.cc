// read_process(): the kernel's figures about this process.
#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "metrics/sample.h"

namespace carpool::metrics {
namespace {

// The fields of /proc/self/stat after the name, which may contain spaces and brackets; [0] is field 3.
std::optional<std::array<double, 22>> read_stat() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const std::size_t bracket = line.rfind(')');
  if (bracket == std::string::npos) return std::nullopt;
  std::istringstream rest(line.substr(bracket + 1));
  std::string state;
  rest >> state;
  std::array<double, 22> fields{};
  for (std::size_t i = 1; i < fields.size(); ++i) rest >> fields[i];
  if (!rest) return std::nullopt;
  return fields;
}

double boot_time() {
  std::ifstream file("/proc/stat");
  for (std::string word; file >> word;) {
    double seconds = 0;
    if (word == "btime" && file >> seconds) return seconds;
  }
  return 0;
}

std::uint64_t count_fds() {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir("/proc/self/fd"), closedir);
  std::uint64_t entries = 0;
  while (dir && readdir(dir.get()) != nullptr) ++entries;
  return entries > 3 ? entries - 3 : 0;  // ".", ".." and this directory stream
}

}  // namespace

std::optional<ProcessSample> read_process() {
  const auto stat = read_stat();
  if (!stat) return std::nullopt;
  const auto field = [&](std::size_t number) { return (*stat)[number - 3]; };  // as proc(5) numbers them
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  ProcessSample sample;
  sample.cpu_seconds = (field(14) + field(15)) / ticks;
  sample.start_time_seconds = boot_time() + field(22) / ticks;
  sample.virtual_bytes = static_cast<std::uint64_t>(field(23));
  sample.resident_bytes = static_cast<std::uint64_t>(field(24)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  sample.open_fds = count_fds();
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) sample.max_fds = limit.rlim_cur;
  return sample;
}

}  // namespace carpool::metrics
