#include "descriptors.h"

#include <unistd.h>

#include <cerrno>

namespace system_faults {
namespace {

constexpr int kMax = 65536;

struct Descriptor {
  std::atomic<Made> made{Made::otherwise};
  std::atomic<int> epoll{-1};
  std::atomic<std::uint32_t> events{0};
  std::atomic<std::uint64_t> data{0};
};
Descriptor table[kMax];  // constant-initialized: calls come before any constructor

bool known(int fd) {
  return fd >= 0 && fd < kMax;
}

struct Names {
  Function accepted, stream, datagram, local, file;
};

Function by_kind(int fd, const Names& names) {
  if (fd == STDOUT_FILENO || fd == STDERR_FILENO) return names.file;
  switch (known(fd) ? table[fd].made.load() : Made::otherwise) {
    case Made::accepted:
      return names.accepted;
    case Made::stream:
      return names.stream;
    case Made::datagram:
      return names.datagram;
    case Made::local:
      return names.local;
    case Made::file:
      return names.file;
    case Made::otherwise:
      break;
  }
  return Function::none;
}

}  // namespace

void note_made(int fd, Made how) {
  if (!known(fd)) return;
  table[fd].epoll = -1;
  table[fd].made = how;
}

void note_registered(int fd, int epoll, const epoll_event& event) {
  if (!known(fd)) return;
  table[fd].events = event.events;
  table[fd].data = event.data.u64;
  table[fd].epoll = epoll;
}

Function receiving(int fd) {
  return by_kind(fd, {Function::recv_client, Function::recv_origin, Function::recv_name, Function::recv_local,
                      Function::read_file});
}

Function sending(int fd) {
  return by_kind(fd, {Function::send_client, Function::send_origin, Function::send_name, Function::send_local,
                      Function::write_file});
}

void owe_event(int fd) {
  if (!known(fd) || table[fd].epoll < 0) return;
  const int before = errno;
  epoll_event event{};
  event.events = table[fd].events;
  event.data.u64 = table[fd].data;
  real<decltype(::epoll_ctl)>("epoll_ctl")(table[fd].epoll, EPOLL_CTL_MOD, fd, &event);
  errno = before;
}

}  // namespace system_faults
