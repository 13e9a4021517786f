// Transitions: the table of a state machine: for each state those that may follow it. The owner of a state asserts each
// change against the table, and static_assert proves what holds for the whole of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace carpool {

// `State`: an enum class with the values 0 to kStates - 1.
template <class State, std::size_t kStates>
class Transitions {
  static_assert(kStates <= 32);

 public:
  struct Row {
    State from;
    std::initializer_list<State> to;
  };
  constexpr Transitions(std::initializer_list<Row> rows) {
    for (const Row& row : rows) {
      for (const State to : row.to) next_[index(row.from)] |= bit(to);
    }
  }

  constexpr bool allows(State from, State to) const { return (next_[index(from)] & bit(to)) != 0; }
  // Returns true if no state follows.
  constexpr bool ends_in(State state) const { return next_[index(state)] == 0; }
  // Returns true if nothing follows `end`, and `end` may follow each other state, not counting `except`.
  constexpr bool all_may_end_in(State end, std::initializer_list<State> except = {}) const {
    std::uint32_t left_out = bit(end);
    for (const State state : except) left_out |= bit(state);
    for (std::size_t from = 0; from < kStates; ++from) {
      if ((left_out >> from & 1U) == 0 && (next_[from] & bit(end)) == 0) return false;
    }
    return ends_in(end);
  }
  constexpr bool all_reachable_from(State first) const {
    std::uint32_t seen = bit(first);
    for (std::size_t round = 0; round < kStates; ++round) {
      for (std::size_t from = 0; from < kStates; ++from) {
        if ((seen >> from & 1U) != 0) seen |= next_[from];
      }
    }
    return seen == (std::uint64_t{1} << kStates) - 1;
  }

 private:
  static constexpr std::size_t index(State state) { return static_cast<std::size_t>(state); }
  static constexpr std::uint32_t bit(State state) { return std::uint32_t{1} << index(state); }

  std::array<std::uint32_t, kStates> next_{};
};

}  // namespace carpool
