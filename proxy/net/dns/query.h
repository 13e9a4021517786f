// Extracts the question from a name server's response. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace carpool::proxy::dns {

struct Answered {
  std::string name;        // as queried, in lower case, without a trailing dot
  std::uint16_t type = 0;  // of the question; 0: not readable
  std::uint8_t rcode = 0;
  bool has_answers = false;
  bool truncated = false;  // the rest is available over TCP
};

// Returns nullopt if the datagram is not a response or has no readable question.
std::optional<Answered> question_of(std::string_view datagram);

}  // namespace carpool::proxy::dns
