// read_with_budget: reads a transport until it is empty, its owner pauses, or its share of the turn is used.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "exec/loop.h"
#include "exec/read_buffer.h"
#include "proxy/net/io_limits.h"
#include "proxy/net/transport.h"

namespace carpool::proxy::net {

enum class ReadEnd : std::uint8_t {
  drained,    // empty for now, or the owner paused
  exhausted,  // the budget is used up: more may be there, and no event announces it
  stopped,    // by the sink: the owner may be gone
  closed,     // by the peer, or by a failure: see `io`
};

struct ReadOutcome {
  ReadEnd end = ReadEnd::drained;
  IoResult io{};
};

// Calls wants() before each read, then most(), which returns the number of bytes that it may take. sink(bytes) returns
// false to stop; the bytes are valid during the call only.
template <class Wants, class Most, class Sink>
ReadOutcome read_with_budget(exec::Loop& loop, Transport& transport, std::size_t& budget, Wants wants, Most most,
                             Sink sink) LOOP_ONLY {
  while (wants() && transport.maybe_readable()) {
    if (budget == 0) return {ReadEnd::exhausted};
    const exec::ReadBuffer buffer(loop);
    const IoResult io = transport.read(buffer.first(std::min(buffer.size(), most())));
    if (io.io == Io::would_block) return {};
    if (io.io != Io::ok) return {ReadEnd::closed, io};
    budget -= std::min(budget, io.bytes);
    if (!sink(buffer.view(io.bytes))) return {ReadEnd::stopped};
  }
  return {};
}

}  // namespace carpool::proxy::net
