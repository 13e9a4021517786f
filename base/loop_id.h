// LoopId: the number of an event loop, constant for the life of the process, 0 to 254. kCacheLine: the alignment of
// data that different loops write, so that they share no cache line.
#pragma once

#include <cstddef>
#include <cstdint>

namespace carpool {

using LoopId = std::uint8_t;
inline constexpr std::size_t kCacheLine = 64;

}  // namespace carpool
