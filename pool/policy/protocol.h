// Protocol, ProtocolMask: the protocol of a connection, and which ones a borrower accepts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace carpool::pool {

// h1: one borrower at a time; moves to the borrower's loop. h2: a session with many borrowers of any loop; never moves
// and is disposed of on its home loop.
enum class Protocol : std::uint8_t { h1, h2 };
inline constexpr std::size_t kProtocols = 2;

// The protocols that a borrower accepts, or that a dial may result in.
enum class ProtocolMask : std::uint8_t { any, h1_only, h2_only };
constexpr bool accepts(ProtocolMask wanted, Protocol kind) {
  return wanted == ProtocolMask::any || (wanted == ProtocolMask::h1_only) == (kind == Protocol::h1);
}

}  // namespace carpool::pool
