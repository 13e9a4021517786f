// Creates a listening socket, TCP or Unix, from its configured address.
#pragma once

#include <string>
#include <utility>

#include "base/fd.h"
#include "base/result.h"
#include "proxy/net/address.h"
#include "proxy/net/socket_access.h"

namespace carpool::proxy::net {

// SocketFile: the file of a Unix socket that this process has bound. The destructor removes it, unless keep() was
// called. Empty for TCP and for inherited sockets.
class SocketFile {
 public:
  SocketFile() = default;
  explicit SocketFile(const Address& bound) : address_(bound) {}
  SocketFile(SocketFile&& other) noexcept : address_(std::exchange(other.address_, {})) {}
  SocketFile& operator=(SocketFile&& other) noexcept {
    std::swap(address_, other.address_);
    return *this;
  }
  SocketFile(const SocketFile&) = delete;
  SocketFile& operator=(const SocketFile&) = delete;
  ~SocketFile();
  void keep() { address_ = {}; }

 private:
  Address address_;
};

struct Bound {
  Fd fd;                   // non-blocking, listening
  Address address;         // with the actual port
  bool inherited = false;  // from a predecessor, which may still listen on it
  // Removes a new file if no acceptor takes the socket.
  SocketFile file{};
};

// Replaces a Unix socket file without a listener, but never a live one. The Fault contains the address and the system's
// error text. The file of a Unix socket never grants more than `access`, from its creation on.
Result<Bound> bind_and_listen(const std::string& address, int backlog, const SocketAccess& access = {});
// As bind_and_listen(); the file of a Unix socket has mode 0600.
Result<Bound> bind_for_owner(const std::string& address, int backlog);
// Removes the file of a Unix socket; another file at its path stays.
void remove_socket_file(const Address& address);

}  // namespace carpool::proxy::net
