// SocketAccess: owner, group and mode of the file of a Unix socket, which decide which users may connect.
#pragma once

#include <sys/types.h>

#include <optional>

#include "base/result.h"
#include "proxy/net/address.h"

namespace carpool::proxy::net {

struct SocketAccess {
  std::optional<mode_t> mode;  // absent: by the process's umask
  std::optional<gid_t> group;  // absent: the process's
};

// Sets group and mode of the file; other addresses than Unix sockets have none. Does not follow a link, and refuses a
// file that is not a socket of this process's user. The Fault names the file and the reason.
Status set_access(const Address& address, const SocketAccess& access);

}  // namespace carpool::proxy::net
