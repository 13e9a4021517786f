// How durations and sizes are written: one whole number and one unit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace carpool::proxy::config {

inline constexpr Duration kLongest = std::chrono::hours(10 * 365 * 24);  // far from any overflow of the clock

std::optional<Duration> parse_duration(std::string_view text);   // "250ms" "30s" "10m" "1h"
std::optional<std::uint64_t> parse_size(std::string_view text);  // "0" "512" "512B" "16KiB" "1MiB" "2GiB"
std::string duration_text(Duration duration);
std::string size_text(std::uint64_t bytes);

// As a TOML basic string, quotes included, and `${` so that it is read back as itself.
std::string quoted(std::string_view text);

// The one of `known` that was probably meant: at most two edits away. Empty: none.
template <class Range>
std::string_view nearest(std::string_view word, const Range& known);
unsigned edit_distance(std::string_view a, std::string_view b);

template <class Range>
std::string_view nearest(std::string_view word, const Range& known) {
  unsigned best = 3;
  std::string_view found;
  for (const std::string_view candidate : known) {
    // As many edits as the lengths differ, at least.
    if (word.size() > candidate.size() + best || candidate.size() > word.size() + best) continue;
    // Two edits turn any two-letter word into any other.
    const unsigned distance = edit_distance(word, candidate);
    if (distance < best && distance < candidate.size()) {
      best = distance;
      found = candidate;
    }
  }
  return found;
}

}  // namespace carpool::proxy::config
