// Texts of durations and sizes: one whole number and one unit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace carpool::proxy::config {

inline constexpr Duration kLongest = std::chrono::hours(10 * 365 * 24);  // ten years: the clock cannot overflow

std::optional<Duration> parse_duration(std::string_view text);   // "250ms" "30s" "10m" "1h"
std::optional<std::uint64_t> parse_size(std::string_view text);  // "0" "512" "512B" "16KiB" "1MiB" "2GiB"
std::string duration_text(Duration duration);
std::string size_text(std::uint64_t bytes);

// Returns the text with each control character as the escape of TOML, so that a key ends no line of a message.
std::string visible(std::string_view text);

// Returns the text as a TOML basic string with its quotes. `${` is escaped, so that the string reads back unchanged.
std::string in_quotes(std::string_view text);

// Returns the most similar word of `known`, at most two edits away; empty if there is none.
template <class Range>
std::string_view nearest(std::string_view word, const Range& known);
unsigned edit_distance(std::string_view a, std::string_view b);
// Returns "did you mean `size`?", or `otherwise` if no word of `known` is similar.
template <class Range>
std::string did_you_mean(std::string_view word, const Range& known, std::string_view otherwise);

template <class Range>
std::string_view nearest(std::string_view word, const Range& known) {
  unsigned best = 3;
  std::string_view found;
  for (const std::string_view candidate : known) {
    // The edit distance is at least the difference of the lengths.
    if (word.size() > candidate.size() + best || candidate.size() > word.size() + best) continue;
    // The distance must be less than the length: two edits turn any two-letter word into any other.
    const unsigned distance = edit_distance(word, candidate);
    if (distance < best && distance < candidate.size()) {
      best = distance;
      found = candidate;
    }
  }
  return found;
}

template <class Range>
std::string did_you_mean(std::string_view word, const Range& known, std::string_view otherwise) {
  const std::string_view meant = nearest(word, known);
  return meant.empty() ? std::string(otherwise) : "did you mean `" + std::string(meant) + "`?";
}

}  // namespace carpool::proxy::config
