// Wire: a plain transport on a real socket pair, and the bytes that arrive at its other end.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <string>

#include "base/fd.h"
#include "proxy/net/plain_transport.h"
#include "proxy/net/write_queue.h"

namespace carpool::proxy::testing {

struct Wire {
  // `room`: size of the socket's send buffer; 0: the system's default.
  explicit Wire(int room = 0) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    if (room != 0) ::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    transport = net::make_plain(Fd(ends[0]));
    far.reset(ends[1]);
  }
  std::string read_all() {
    std::string received;
    char buffer[65536];
    for (ssize_t n = 0; (n = ::recv(far.get(), buffer, sizeof buffer, 0)) > 0;) {
      received.append(buffer, static_cast<std::size_t>(n));
    }
    return received;
  }
  WriteQueue write_queue;
  std::unique_ptr<net::Transport> transport;
  Fd far;
};

}  // namespace carpool::proxy::testing
