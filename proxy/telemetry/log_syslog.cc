#include "proxy/telemetry/log_syslog.h"

#include "base/repeat_interrupted.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <system_error>
#include <utility>

namespace carpool::proxy::log {
namespace {

constexpr int kDaemon = 3 * 8;  // the facility `daemon`

class SyslogTarget final : public Target {
 public:
  explicit SyslogTarget(std::string path) : path_(std::move(path)) {}

  bool connect() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path_.size() >= sizeof address.sun_path) return errno = ENAMETOOLONG, false;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    fd_.reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd_ && ::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return true;
    const int error = errno;
    fd_.reset();
    return errno = error, false;
  }

  std::size_t write(std::string_view text, int priority) override {
    std::size_t lost = 0;
    while (!text.empty()) {
      const std::size_t size = std::min(text.find('\n'), text.size());
      frame(text.substr(0, size), priority);
      if (!send()) ++lost;
      text.remove_prefix(std::min(size + 1, text.size()));
    }
    return lost;
  }

 private:
  // Formats a datagram such as "<30>Nov 25 03:12:31 carpool[4711]: LINE", in local time.
  void frame(std::string_view line, int priority) {
    std::array<char, 32> time;
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    localtime_r(&now, &parts);
    const std::size_t size = std::strftime(time.data(), time.size(), "%b %e %T", &parts);
    datagram_ = "<" + std::to_string(kDaemon + priority) + ">";
    datagram_.append(time.data(), size)
        .append(" carpool[")
        .append(std::to_string(::getpid()))
        .append("]: ")
        .append(line);
  }

  // Tries twice, because a restarted daemon has a new socket under the same name.
  bool send() {
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (!fd_ && !connect()) return false;
      while (wait_writable(fd_.get())) {
        const ssize_t sent =
            repeat_interrupted([&] { return ::send(fd_.get(), datagram_.data(), datagram_.size(), MSG_NOSIGNAL); });
        if (sent >= 0) return true;
        if (errno != EAGAIN) break;
      }
      if (errno == EMSGSIZE) return false;
      fd_.reset();
    }
    return false;
  }

  const std::string path_;
  Fd fd_;
  std::string datagram_;
};

}  // namespace

Result<std::unique_ptr<Target>> syslog_target(const std::string& path) {
  auto target = std::make_unique<SyslogTarget>(path);
  if (!target->connect()) {
    return Fault{FaultKind::unroutable, Side::self,
                 "cannot connect to the syslog socket " + path + ": " + std::generic_category().message(errno)};
  }
  return std::unique_ptr<Target>(std::move(target));
}

}  // namespace carpool::proxy::log
