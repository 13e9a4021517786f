// FdMessage: a text and descriptors, sent from one process to another over a Unix socket (SCM_RIGHTS). Blocks, with a
// timeout: for process start and the admin thread only.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace carpool::proxy {

struct FdMessage {
  static constexpr std::size_t kMaxDescriptors = 250;  // the kernel allows 253 per message
  static constexpr std::size_t kMaxBytes = std::size_t{8} << 20;

  std::string text;
  std::vector<Fd> descriptors;
};

// Sends a message. The sender keeps its descriptors. `timeout` is that of the whole message, however slowly the other
// side reads or writes.
Status send_fds(int socket, const FdMessage& fd_message, Duration timeout);
Result<FdMessage> receive_fds(int socket, Duration timeout);

}  // namespace carpool::proxy
