#include "proxy/net/dns/lookup_result.h"

#include <ares.h>

#include <functional>
#include <utility>

namespace carpool::proxy::dns {
namespace {
constexpr std::size_t kTable = 2 * kMaxAddresses;  // a power of two
static_assert((kTable & (kTable - 1)) == 0);
}  // namespace

LookupResult::Kind kind_of(int status, int timeouts) {
  switch (status) {
    case ARES_SUCCESS:
      return LookupResult::Kind::found;
    case ARES_ENODATA:  // "no data" for one family is no result for the other if that one got no response
      return timeouts > 0 ? LookupResult::Kind::timed_out : LookupResult::Kind::absent;
    case ARES_ENOTFOUND:
    case ARES_EBADNAME:
      return LookupResult::Kind::absent;
    case ARES_ETIMEOUT:
      return LookupResult::Kind::timed_out;
    case ARES_ECONNREFUSED:
      return LookupResult::Kind::unreachable;
    default:
      return LookupResult::Kind::failed;
  }
}

void AddressList::add(const net::Address& address) {
  if (table_.empty()) table_.resize(kTable);
  std::size_t at = std::hash<std::string_view>()(address.bytes()) & (kTable - 1);
  while (table_[at] != 0) {
    if (addresses_[table_[at] - 1] == address) return;
    at = (at + 1) & (kTable - 1);
  }
  if (addresses_.size() == kMaxAddresses) {
    ++left_out_;
    return;
  }
  addresses_.push_back(address);
  table_[at] = static_cast<std::uint32_t>(addresses_.size());
}

void AddressList::move_to(LookupResult& result) {
  result.addresses = std::move(addresses_);
  result.left_out += left_out_;
}

}  // namespace carpool::proxy::dns
