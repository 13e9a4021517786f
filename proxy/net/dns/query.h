// Which question a datagram of a name server answers. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace carpool::proxy::dns {

struct Answered {
  std::string name;        // as asked, in lower case, without a dot at the end
  bool truncated = false;  // the rest is to be had over TCP
};

// Nothing: it is no answer, or has no question that can be read.
std::optional<Answered> question_of(std::string_view datagram);

}  // namespace carpool::proxy::dns
