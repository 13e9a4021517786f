// The states of an exchange and their transitions, as one table. Checked at compile time: deterministic, every state
// reachable, and the client may disconnect in every state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace carpool::proxy {

enum class ExchangeState : std::uint8_t {
  idle,         // pooled, not begun
  collecting,   // the head is complete; the body is read before a connection is borrowed
  authorizing,  // the head, or the whole body, was received; waits for a token of the origin
  borrowing,    // the head is complete; waits for a connection (queued or for a dial)
  forwarding,   // has a lease; the request is being sent, no final response head yet
  relaying,     // the final response head was sent to the client; the request is never sent again
  tunnel,       // after 101 or CONNECT: raw bytes until both directions are closed
};

enum class ExchangeEvent : std::uint8_t {
  collect,        // a request that may be forwarded once its body was read
  authorize,      // a request that may be forwarded once its origin has a token, or a newer one
  begin,          // a request that may be forwarded
  answered,       // a local reply (refused, or a fault): over
  lease,          // a connection was leased
  retry,          // the connection failed in a way that allows another one
  response_head,  // the final head
  switched,       // the requested 101
  ended,          // both bodies complete, or both directions of a tunnel
  broken,         // failed after a part of the response was sent: the client's connection is cut
  client_gone,
};

struct ExchangeRow {
  ExchangeState from;
  ExchangeEvent event;
  ExchangeState to;
};

inline constexpr std::array kExchangeTable{
    ExchangeRow{ExchangeState::idle, ExchangeEvent::collect, ExchangeState::collecting},
    ExchangeRow{ExchangeState::idle, ExchangeEvent::authorize, ExchangeState::authorizing},
    ExchangeRow{ExchangeState::idle, ExchangeEvent::begin, ExchangeState::borrowing},
    ExchangeRow{ExchangeState::idle, ExchangeEvent::answered, ExchangeState::idle},
    ExchangeRow{ExchangeState::idle, ExchangeEvent::client_gone, ExchangeState::idle},
    ExchangeRow{ExchangeState::collecting, ExchangeEvent::authorize, ExchangeState::authorizing},
    ExchangeRow{ExchangeState::collecting, ExchangeEvent::begin, ExchangeState::borrowing},
    ExchangeRow{ExchangeState::collecting, ExchangeEvent::answered, ExchangeState::idle},
    ExchangeRow{ExchangeState::collecting, ExchangeEvent::client_gone, ExchangeState::idle},
    ExchangeRow{ExchangeState::authorizing, ExchangeEvent::begin, ExchangeState::borrowing},
    ExchangeRow{ExchangeState::authorizing, ExchangeEvent::answered, ExchangeState::idle},
    ExchangeRow{ExchangeState::authorizing, ExchangeEvent::client_gone, ExchangeState::idle},
    ExchangeRow{ExchangeState::borrowing, ExchangeEvent::authorize, ExchangeState::authorizing},
    ExchangeRow{ExchangeState::borrowing, ExchangeEvent::lease, ExchangeState::forwarding},
    ExchangeRow{ExchangeState::borrowing, ExchangeEvent::answered, ExchangeState::idle},
    ExchangeRow{ExchangeState::borrowing, ExchangeEvent::client_gone, ExchangeState::idle},
    ExchangeRow{ExchangeState::forwarding, ExchangeEvent::authorize, ExchangeState::authorizing},
    ExchangeRow{ExchangeState::forwarding, ExchangeEvent::retry, ExchangeState::borrowing},
    ExchangeRow{ExchangeState::forwarding, ExchangeEvent::answered, ExchangeState::idle},
    ExchangeRow{ExchangeState::forwarding, ExchangeEvent::response_head, ExchangeState::relaying},
    ExchangeRow{ExchangeState::forwarding, ExchangeEvent::switched, ExchangeState::tunnel},
    ExchangeRow{ExchangeState::forwarding, ExchangeEvent::client_gone, ExchangeState::idle},
    ExchangeRow{ExchangeState::relaying, ExchangeEvent::ended, ExchangeState::idle},
    ExchangeRow{ExchangeState::relaying, ExchangeEvent::broken, ExchangeState::idle},
    ExchangeRow{ExchangeState::relaying, ExchangeEvent::client_gone, ExchangeState::idle},
    ExchangeRow{ExchangeState::tunnel, ExchangeEvent::ended, ExchangeState::idle},
    ExchangeRow{ExchangeState::tunnel, ExchangeEvent::broken, ExchangeState::idle},
    ExchangeRow{ExchangeState::tunnel, ExchangeEvent::client_gone, ExchangeState::idle},
};

inline constexpr std::size_t kExchangeStates = 7;

// Returns the row's index, or kNoRow. Uses an index because g++ 12 with UBSan cannot compare pointers at compile time.
inline constexpr std::size_t kNoRow = kExchangeTable.size();
constexpr std::size_t find_row(ExchangeState from, ExchangeEvent event) {
  for (std::size_t i = 0; i < kExchangeTable.size(); ++i) {
    if (kExchangeTable[i].from == from && kExchangeTable[i].event == event) return i;
  }
  return kNoRow;
}

// find_row() as a look-up table.
inline constexpr std::size_t kExchangeEvents = 11;
inline constexpr auto kRowOf = [] {
  std::array<std::array<std::uint8_t, kExchangeEvents>, kExchangeStates> rows{};
  for (std::size_t state = 0; state < kExchangeStates; ++state) {
    for (std::size_t event = 0; event < kExchangeEvents; ++event) {
      const std::size_t row = find_row(static_cast<ExchangeState>(state), static_cast<ExchangeEvent>(event));
      rows[state][event] = static_cast<std::uint8_t>(row);
    }
  }
  return rows;
}();
constexpr std::size_t row_of(ExchangeState from, ExchangeEvent event) {
  return kRowOf[static_cast<std::size_t>(from)][static_cast<std::size_t>(event)];
}

namespace detail {
constexpr bool deterministic() {
  for (std::size_t i = 0; i < kExchangeTable.size(); ++i) {
    if (find_row(kExchangeTable[i].from, kExchangeTable[i].event) != i)
      return false;  // an earlier row has the same state and event
  }
  return true;
}
constexpr bool all_reachable() {
  std::array<bool, kExchangeStates> seen{};
  seen[0] = true;
  for (std::size_t round = 0; round < kExchangeStates; ++round) {
    for (const ExchangeRow& row : kExchangeTable) {
      if (seen[static_cast<std::size_t>(row.from)]) seen[static_cast<std::size_t>(row.to)] = true;
    }
  }
  for (bool reached : seen) {
    if (!reached) return false;
  }
  return true;
}
constexpr bool client_may_always_leave() {
  for (std::size_t state = 0; state < kExchangeStates; ++state) {
    const std::size_t row = find_row(static_cast<ExchangeState>(state), ExchangeEvent::client_gone);
    if (row == kNoRow || kExchangeTable[row].to != ExchangeState::idle) return false;
  }
  return true;
}
}  // namespace detail

static_assert(detail::deterministic(), "two rows for one state and event");
static_assert(detail::all_reachable(), "a state that nothing leads to");
static_assert(detail::client_may_always_leave(), "the client must be able to leave in every state");

}  // namespace carpool::proxy
