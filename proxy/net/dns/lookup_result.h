// LookupResult: the result of a lookup, whatever its source.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "proxy/net/address.h"

namespace carpool::proxy::dns {

// Limit of one name, over all dials; a name server may return thousands.
inline constexpr std::size_t kMaxAddresses = 256;

struct LookupResult {
  enum class Kind : std::uint8_t {
    found,
    absent,       // an authoritative "does not exist"
    failed,       // a name server reported an error
    unreachable,  // no name server was reachable: not cached as a result for the name
    timed_out,    // no response
  } kind = Kind::failed;
  std::vector<net::Address> addresses;
  Duration ttl{};            // the smallest TTL of all records
  std::string_view words;    // static text of c-ares
  std::size_t left_out = 0;  // number of addresses beyond kMaxAddresses
  bool half = false;         // found, but no name server had an answer for the other family
};

// `timeouts`: the number of tries that timed out.
LookupResult::Kind kind_of(int status, int timeouts);

// AddressList: collects distinct addresses in arrival order, at most kMaxAddresses.
class AddressList {
 public:
  void add(const net::Address& address);
  // Moves its addresses to `result`.
  void move_to(LookupResult& result);

 private:
  std::vector<net::Address> addresses_;
  std::vector<std::uint32_t> table_;  // open addressing: indices into addresses_, plus 1
  std::size_t left_out_ = 0;
};

}  // namespace carpool::proxy::dns
