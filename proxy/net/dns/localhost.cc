#include "proxy/net/dns/localhost.h"

#include <netdb.h>
#include <sys/socket.h>

#include <string_view>

namespace carpool::proxy::dns {
namespace {

bool is_localhost(std::string_view name) {
  return name == "localhost" || name.ends_with(".localhost");
}

bool in_hosts_file(ares_channel channel, const std::string& name, int family) {
  hostent* found = nullptr;
  const int status = ares_gethostbyname_file(channel, name.c_str(), family, &found);
  if (found != nullptr) ares_free_hostent(found);
  return status == ARES_SUCCESS;
}

}  // namespace

std::optional<LookupResult> loopback_of(ares_channel channel, const std::string& name) {
  if (!is_localhost(name)) return std::nullopt;
  if (in_hosts_file(channel, name, AF_INET) || in_hosts_file(channel, name, AF_INET6)) return std::nullopt;
  LookupResult result{LookupResult::Kind::found, {}, {}, {}};
  for (const char* const address : {"127.0.0.1", "::1"}) result.addresses.push_back(*net::Address::literal(address, 0));
  return result;
}

}  // namespace carpool::proxy::dns
