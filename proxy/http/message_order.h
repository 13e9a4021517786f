// MessageOrder: the order of the parts of a message (RFC 9113 §8.1, RFC 9110 §15.2) as one table. HTTP/2 sessions check
// both requests of clients and responses of origins against it; an exchange checks every upstream stream against it
// before a byte reaches a client. The table includes Content-Length against the actual content.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace carpool::proxy::http {

enum class MessagePhase : std::uint8_t {
  awaiting_head,  // nothing, or only informational (1xx) heads were received
  content,        // the final head was received; content or trailers may follow
  no_content,     // the final head was received and rules out content: a response to HEAD, 204, 304
  ended,
  malformed,  // a stream error PROTOCOL_ERROR (RFC 9113 §8.1.1); final
  closed,     // a stream error STREAM_CLOSED: a frame after END_STREAM (RFC 9113 §5.1)
};
inline constexpr std::size_t kMessagePhases = 6;

// `_end`: the same frame carries END_STREAM. `_short`: and less content than announced was received.
enum class MessageEvent : std::uint8_t {
  informational,  // a 1xx head
  informational_end,
  head,  // the final head
  head_end,
  head_short,
  bare_head,  // the final head of a message without content
  bare_head_end,
  data,        // content, not exceeding the announced length
  excess,      // content beyond the announced length
  empty_data,  // DATA without content
  end,         // END_STREAM on DATA
  end_short,
  fields,  // HEADERS after the final head, without END_STREAM
  trailers,
  trailers_short,
};
inline constexpr std::size_t kMessageEvents = 15;

namespace detail {
using Row = std::array<MessagePhase, kMessageEvents>;
inline constexpr auto A = MessagePhase::awaiting_head;
inline constexpr auto C = MessagePhase::content;
inline constexpr auto N = MessagePhase::no_content;
inline constexpr auto E = MessagePhase::ended;
inline constexpr auto M = MessagePhase::malformed;
inline constexpr auto X = MessagePhase::closed;
}  // namespace detail

// clang-format off
inline constexpr std::array<detail::Row, kMessagePhases> kMessageTable = [] {
  using namespace detail;
  return std::array<Row, kMessagePhases>{
      // 1xx      head           bare head  DATA                       HEADERS after the head
      //  .  end   .  end  short  .  end     .  excess empty end short  fields trailers short
      Row{A, M,    C, E,   M,     N, E,      M, M,     M,    M,  M,     M,     M,       M},   // awaiting_head
      Row{M, M,    M, M,   M,     M, M,      C, M,     C,    E,  M,     M,     E,       M},   // content
      Row{M, M,    M, M,   M,     M, M,      M, M,     N,    E,  E,     M,     E,       E},   // no_content
      Row{X, X,    X, X,   X,     X, X,      X, X,     X,    X,  X,     X,     X,       X},   // ended
      Row{M, M,    M, M,   M,     M, M,      M, M,     M,    M,  M,     M,     M,       M},   // malformed
      Row{X, X,    X, X,   X,     X, X,      X, X,     X,    X,  X,     X,     X,       X}};  // closed
}();
// clang-format on

constexpr MessagePhase follow(MessagePhase from, MessageEvent event) {
  return kMessageTable[static_cast<std::size_t>(from)][static_cast<std::size_t>(event)];
}
constexpr bool violates(MessagePhase phase) {
  return phase == MessagePhase::malformed || phase == MessagePhase::closed;
}
// Returns an error text for a step that violates the table.
const char* violation(MessagePhase from, MessageEvent event);

// MessageOrder: the phase of one message.
class MessageOrder {
 public:
  // Each adds one part of the message. Returns false on a violation; error() explains it, and no later part is
  // accepted.
  bool informational(bool end);
  // `length`: the announced length of the content. `bare`: the message has no content, whatever the length.
  bool head(bool bare, std::optional<std::uint64_t> length, bool end);
  bool data(std::size_t bytes);
  bool end();  // END_STREAM on DATA
  bool fields(bool end);

  bool awaits_head() const { return phase_ == MessagePhase::awaiting_head; }
  MessagePhase phase() const { return phase_; }
  bool violated() const { return violates(phase_); }
  const char* error() const { return error_; }

 private:
  bool advance(MessageEvent event);
  bool short_of() const { return announced_ && left_ != 0; }
  MessagePhase phase_ = MessagePhase::awaiting_head;
  bool announced_ = false;  // Content-Length is checked
  std::uint64_t left_ = 0;  // content still expected
  const char* error_ = nullptr;
};

namespace detail {
constexpr MessagePhase phase_at(std::size_t i) {
  return static_cast<MessagePhase>(i);
}
constexpr MessageEvent event_at(std::size_t i) {
  return static_cast<MessageEvent>(i);
}
constexpr bool is_head(MessageEvent event) {
  return event >= MessageEvent::head && event <= MessageEvent::bare_head_end;
}
constexpr bool has_content(MessageEvent event) {
  return event == MessageEvent::data || event == MessageEvent::excess;
}
constexpr bool ends(MessageEvent event) {
  switch (event) {
    case MessageEvent::informational:
    case MessageEvent::head:
    case MessageEvent::bare_head:
    case MessageEvent::data:
    case MessageEvent::excess:
    case MessageEvent::empty_data:
    case MessageEvent::fields:
      return false;
    default:
      return true;
  }
}
// Returns true if `rule(from, event, to)` holds for every step.
template <class Rule>
constexpr bool everywhere(Rule rule) {
  for (std::size_t from = 0; from < kMessagePhases; ++from) {
    for (std::size_t event = 0; event < kMessageEvents; ++event) {
      if (!rule(phase_at(from), event_at(event), kMessageTable[from][event])) return false;
    }
  }
  return true;
}
constexpr bool all_reachable() {
  std::array<bool, kMessagePhases> seen{true};
  for (std::size_t round = 0; round < kMessagePhases; ++round) {
    everywhere([&seen](MessagePhase from, MessageEvent, MessagePhase to) {
      if (seen[static_cast<std::size_t>(from)]) seen[static_cast<std::size_t>(to)] = true;
      return true;
    });
  }
  for (const bool reached : seen) {
    if (!reached) return false;
  }
  return true;
}
using P = MessagePhase;
using V = MessageEvent;
}  // namespace detail

static_assert(detail::all_reachable(), "a phase that nothing leads to");
static_assert(detail::everywhere([](auto from, auto event, auto to) {
                return violates(to) || from == detail::P::awaiting_head || !detail::is_head(event);
              }),
              "a message has one final head");
static_assert(detail::everywhere([](auto from, auto event, auto to) {
                return from != detail::P::awaiting_head || violates(to) || event == detail::V::informational ||
                       detail::is_head(event);
              }),
              "nothing but informational heads comes before the final head");
static_assert(detail::everywhere([](auto from, auto event, auto to) {
                return violates(to) || !detail::has_content(event) || from == detail::P::content;
              }),
              "content follows a head that allows it, and nothing else");
static_assert(detail::everywhere([](auto, auto event, auto to) {
                return violates(to) || detail::ends(event) == (to == detail::P::ended);
              }),
              "END_STREAM ends the message, and nothing else does");
static_assert(detail::everywhere([](auto from, auto, auto to) { return from != detail::P::ended || violates(to); }),
              "nothing follows the end");
static_assert(detail::everywhere([](auto from, auto, auto to) { return !violates(from) || to == from; }),
              "no way leads out of a violation");

}  // namespace carpool::proxy::http
