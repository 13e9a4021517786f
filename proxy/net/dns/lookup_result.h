// LookupResult: what a look-up came to, however it was asked.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "proxy/net/address.h"

namespace carpool::proxy::dns {

// Of one name, over all dials; a name server may send thousands.
inline constexpr std::size_t kMostAddresses = 256;

struct LookupResult {
  enum class Kind : std::uint8_t {
    found,
    absent,       // an authority says that there is none
    failed,       // a name server could not say
    unreachable,  // no name server could be spoken to: says nothing of the name
    timed_out,    // nobody said anything
  } kind = Kind::failed;
  std::vector<net::Address> addresses;
  Duration ttl{};            // of the shortest-lived part
  std::string_view words;    // c-ares' own, static
  std::size_t left_out = 0;  // addresses beyond kMostAddresses
};

// `timeouts`: how many tries ended so.
LookupResult::Kind kind_of(int status, int timeouts);

// Takes distinct addresses in the order they come, at most kMostAddresses.
class AddressList {
 public:
  void add(const net::Address& address);
  // Gives what it has to `answer`.
  void move_to(LookupResult& answer);

 private:
  std::vector<net::Address> addresses_;
  std::vector<std::uint32_t> table_;  // open addressing: places in addresses_ + 1
  std::size_t left_out_ = 0;
};

}  // namespace carpool::proxy::dns
