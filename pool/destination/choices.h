// The choices that callers of Destination::Impl make by name.
#pragma once

#include <cstdint>

namespace carpool::pool {

// Searcher: the thread that searches for an idle entry. `own_loop`: the loop's own, which begins with the entry that
// the loop released last.
enum class Searcher : std::uint8_t { own_loop, any_loop };

// IdleScope: idle connections that an operation may close. `served`: only those that carried a request.
enum class IdleScope : std::uint8_t { all, served };

// SessionEnd: `drains`: the session serves its users and the grants in flight. `broken`: it serves none of them.
enum class SessionEnd : std::uint8_t { drains, broken };

// LimitSource: the event in which a session's peer stated its limit of streams.
enum class LimitSource : std::uint8_t { settings, first_response };

// PauseKind: an operator's pause. `drain`: connections close too.
enum class PauseKind : std::uint8_t { plain, drain };

// FormerSize: the size of the pool before its settings changed.
enum class FormerSize : std::uint8_t { fixed, automatic };

}  // namespace carpool::pool
