// net_support.h: helpers of the net tests: a real loop, loopback sockets, a file that is removed at the end.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "exec/uv/loop.h"
#include "proxy/net/address.h"
#include "proxy/net/transport.h"

namespace carpool::proxy::net {

using namespace std::chrono_literals;

class TurnedLoop {
 public:
  TurnedLoop() : loop_(make()) {}
  exec::UvLoop& operator*() { return *loop_; }
  exec::UvLoop* operator->() { return loop_.get(); }

  // Runs the loop until `done()`. Returns false if that took longer than `most`.
  template <class Done>
  bool until(Done done, Duration most = 10s) {
    exec::Timer limit = exec::Timer::bind<&TurnedLoop::end_wait>(*loop_, *this);
    const Instant end = Clock::now() + most;
    loop_->turn(false);
    while (!done() && Clock::now() < end) {
      limit.arm(end);
      loop_->turn(true);
    }
    return done();
  }
  // Returns the shortest time of up to `tries` runs that end within `limit`, or of all: a busy machine may delay any
  // single one.
  template <class Run>
  static Duration shortest(Duration limit, const Run& run, int tries = 8) {
    Duration least = Duration::max();
    for (int n = 0; n < tries && least >= limit; ++n) {
      const Instant begin = Clock::now();
      run();
      least = std::min<Duration>(least, Clock::now() - begin);
    }
    return least;
  }
  void pass(Duration time) {
    const Instant end = Clock::now() + time;
    until([&] { return Clock::now() >= end; }, time);
    loop_->turn(false);  // its clock may be older than `end`
  }

 private:
  void end_wait() {}

  static std::unique_ptr<exec::UvLoop> make() {
    auto made = exec::UvLoop::make(0);
    return std::move(*made);
  }
  std::unique_ptr<exec::UvLoop> loop_;
};

inline Address address(std::string_view text) {
  auto parsed = Address::parse(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? *parsed : Address();
}

inline Fd listen_on(std::string_view text, int backlog = 64) {
  const Address at = address(text);
  Fd listener(::socket(at.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(listener.get(), at.get(), at.length()), 0) << text;
  EXPECT_EQ(::listen(listener.get(), backlog), 0);
  return listener;
}

// A port without a listener.
inline Address refusing(std::string_view text) {
  const Fd listener = listen_on(text);
  return Address::local_of(listener.get());
}

inline Fd connect_to(const Address& peer) {
  Fd fd(::socket(peer.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(fd.get(), peer.get(), peer.length()), 0);
  return fd;
}

inline bool wait_readable(int fd, int ms = 5000) {
  pollfd waiting{fd, POLLIN, 0};
  return ::poll(&waiting, 1, ms) == 1;
}

// Two ends of one TCP connection on loopback.
inline std::pair<Fd, Fd> tcp_pair() {
  const Fd listener = listen_on("127.0.0.1:0");
  Fd here = connect_to(Address::local_of(listener.get()));
  wait_readable(listener.get());
  Fd there(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  return {std::move(here), std::move(there)};
}

inline iovec piece(std::string_view bytes) {
  return {const_cast<char*>(bytes.data()), bytes.size()};
}

class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view contents) {
    std::string name = ::testing::TempDir() + "carpool-net-XXXXXX";
    const Fd made(::mkstemp(name.data()));
    path_ = name;
    std::ofstream(path_) << contents;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace carpool::proxy::net
