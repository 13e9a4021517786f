// Parses the two options of resolv.conf(5) that c-ares 1.18 does not support by these names.
#pragma once

#include <string_view>

namespace carpool::proxy::dns {

struct ResolvOptions {
  int timeout_s = 5;  // of the first try; doubles per round
  int attempts = 2;   // rounds over all name servers
};

ResolvOptions parse_resolv_options(std::string_view text);

}  // namespace carpool::proxy::dns
