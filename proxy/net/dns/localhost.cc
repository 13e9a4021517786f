#include "proxy/net/dns/localhost.h"

#include <netinet/in.h>

namespace carpool::proxy::dns {
namespace {

bool in_hosts_file(ares_channel channel, const std::string& name, int family) {
  hostent* found = nullptr;
  const int status = ares_gethostbyname_file(channel, name.c_str(), family, &found);
  if (found != nullptr) ares_free_hostent(found);
  return status == ARES_SUCCESS;
}

}  // namespace

bool is_localhost(std::string_view name) {
  constexpr std::string_view kName = "localhost", kBelow = ".localhost";
  return name == kName || name.ends_with(kBelow);
}

std::optional<LookupResult> loopback_of(ares_channel channel, const std::string& name) {
  if (!is_localhost(name)) return std::nullopt;
  if (in_hosts_file(channel, name, AF_INET) || in_hosts_file(channel, name, AF_INET6)) return std::nullopt;
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_addr = in6addr_loopback;
  LookupResult result{LookupResult::Kind::found, {}, {}, {}};
  result.addresses.emplace_back(reinterpret_cast<const sockaddr*>(&v4), socklen_t{sizeof v4});
  result.addresses.emplace_back(reinterpret_cast<const sockaddr*>(&v6), socklen_t{sizeof v6});
  return result;
}

}  // namespace carpool::proxy::dns
