// splice() of transports in memory: the bytes go through a real pipe and are copied on both sides.
#pragma once

#include <sys/uio.h>

#include <string>

#include "proxy/net/pipe.h"
#include "proxy/net/transport.h"

namespace carpool::test {

inline proxy::net::IoResult copied_splice_to(proxy::net::Transport& transport, proxy::net::Pipe& pipe,
                                             std::size_t most) {
  std::string bytes(most, '\0');
  const proxy::net::IoResult io = transport.read(bytes);
  if (io.io == proxy::net::Io::ok) pipe.put(std::string_view(bytes).substr(0, io.bytes));
  return io;
}

inline proxy::net::IoResult copied_splice_from(proxy::net::Transport& transport, proxy::net::Pipe& pipe) {
  std::string bytes = pipe.take();
  const iovec piece{bytes.data(), bytes.size()};
  const proxy::net::IoResult io = transport.write({&piece, 1});
  if (io.bytes < bytes.size()) pipe.put(std::string_view(bytes).substr(io.bytes));
  return io;
}

}  // namespace carpool::test
