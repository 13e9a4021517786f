#include "proxy/net/dns/lookup_result.h"

#include <ares.h>

#include <functional>
#include <utility>

namespace carpool::proxy::dns {
namespace {
constexpr std::size_t kTable = 2 * kMostAddresses;  // a power of two
static_assert((kTable & (kTable - 1)) == 0);
}  // namespace

Answer::Kind kind_of(int status, int timeouts) {
  switch (status) {
    case ARES_SUCCESS:
      return Answer::Kind::found;
    case ARES_ENODATA:  // one family's "none" says nothing of the other's, if that one got no answer
      return timeouts > 0 ? Answer::Kind::timed_out : Answer::Kind::absent;
    case ARES_ENOTFOUND:
    case ARES_EBADNAME:
      return Answer::Kind::absent;
    case ARES_ETIMEOUT:
      return Answer::Kind::timed_out;
    case ARES_ECONNREFUSED:
      return Answer::Kind::unreachable;
    default:
      return Answer::Kind::failed;
  }
}

void AddressList::add(const net::Address& address) {
  if (table_.empty()) table_.resize(kTable);
  std::size_t at = std::hash<std::string_view>()(address.bytes()) & (kTable - 1);
  while (table_[at] != 0) {
    if (addresses_[table_[at] - 1] == address) return;
    at = (at + 1) & (kTable - 1);
  }
  if (addresses_.size() == kMostAddresses) {
    ++left_out_;
    return;
  }
  addresses_.push_back(address);
  table_[at] = static_cast<std::uint32_t>(addresses_.size());
}

void AddressList::move_to(Answer& answer) {
  answer.addresses = std::move(addresses_);
  answer.left_out += left_out_;
}

}  // namespace carpool::proxy::dns
