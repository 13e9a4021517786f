// Extracts the question from a name server's response. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace carpool::proxy::dns {

struct Answered {
  std::string name;        // as queried, in lower case, without a trailing dot
  bool truncated = false;  // the rest is available over TCP
};

// Returns nullopt if the datagram is not a response or has no readable question.
std::optional<Answered> question_of(std::string_view datagram);

}  // namespace carpool::proxy::dns
