// Limits on the bytes that one connection moves at a time, so that it does not delay the others of its loop.
#pragma once

#include <cstddef>

namespace carpool::proxy {

// Bytes after which a connection gives the turn of its loop to the others; its last read may exceed them. A client of
// HTTP/1.1 counts reads and requests instead (H1Client::advance()).
inline constexpr std::size_t kTurnBytes = std::size_t{256} * 1024;
// The source of a flow is paused while the sink's write queue holds more than this; one read may still exceed it.
inline constexpr std::size_t kHighWatermark = std::size_t{64} * 1024;

// A body of which at least this is left, or a tunnel whose origin sends pieces of at least this size, is spliced from
// socket to socket where that is possible.
inline constexpr std::size_t kSplicedBytes = std::size_t{32} * 1024;

}  // namespace carpool::proxy
