// The control block: words in a file that the test and the program under test both map. The test writes which function
// fails and when; the preloaded library counts the calls and makes them fail.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cstdint>

namespace system_faults {

// The order is that of FUNCTIONS in control.py. Calls on sockets are distinguished by how the socket was made.
enum class Function : std::uint64_t {
  none,
  accept,
  connect,
  socket,
  recv_client,  // accepted sockets
  send_client,
  recv_origin,  // TCP sockets made by socket()
  send_origin,
  recv_name,  // datagram sockets
  send_name,
  recv_local,  // Unix stream sockets
  send_local,
  epoll_add,
  epoll_wait,
  epoll_create,
  eventfd,
  inotify,
  thread,
  open,
  read_file,
  write_file,
  sync,
  memory,
  random,
  bind,
  listen,
  count,
};

struct Control {
  using Word = std::atomic<std::uint64_t>;
  Word function;  // the one that fails; none: disarmed
  Word error;     // errno; 0: the call transfers one byte
  Word nth;       // the first call that fails, counted from 1
  Word times;     // how many calls fail from there on
  Word seen;      // its calls since it was armed
  Word failed;    // how many of them failed
  Word realtime;  // nanoseconds that a clock is ahead of the system's, as two's complement
  Word monotonic;
  Word calls[static_cast<std::uint64_t>(Function::count)];
};

// Null until the library is loaded, and in a program without SYSTEM_FAULTS.
Control* control();

// Counts a call. Returns whether it is to fail; errno is set then, and 0 stands for a transfer of one byte.
bool fails(Function function);

// The function that this library replaces.
template <typename F>
F* real(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

}  // namespace system_faults

// Defines `next` as the replaced function; looked up once.
#define SYSTEM_FAULTS_NEXT(name) static auto* const next = system_faults::real<decltype(name)>(#name)
