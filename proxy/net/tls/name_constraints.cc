#include "proxy/net/tls/name_constraints.h"

#include <openssl/x509v3.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace carpool::proxy::tls {
namespace {

constexpr std::size_t kNetwork4 = 8, kNetwork6 = 32;  // an address and its mask

using ConstraintsPtr = std::unique_ptr<NAME_CONSTRAINTS, FreeWith<NAME_CONSTRAINTS_free>>;

std::string_view bytes_of(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

// The addresses from `first` to `last`, in network order.
struct Network {
  std::string first, last;
};

// The bounds of one list of subtrees, the permitted or the excluded ones, for each kind of name.
struct Subtrees {
  bool names = false, addresses = false;  // it has one of this kind
  bool all_names = false, gaps = false;   // in a mask
  std::vector<Network> v4, v6;
};

// Returns true if the set bits are all at the front (RFC 5280 §4.2.1.10).
bool is_prefix(std::string_view mask) {
  bool ended = false;
  for (const char byte : mask) {
    const unsigned clear = ~static_cast<unsigned char>(byte) & 0xFFU;
    if ((clear & (clear + 1)) != 0 || (ended && clear != 0xFF)) return false;
    ended |= clear != 0;
  }
  return true;
}

void read_network(std::string_view network, Subtrees& seen) {
  seen.addresses = true;
  if (network.size() != kNetwork4 && network.size() != kNetwork6) return;
  const std::string_view base = network.substr(0, network.size() / 2), mask = network.substr(network.size() / 2);
  seen.gaps |= !is_prefix(mask);
  Network one{std::string(base), std::string(base)};
  for (std::size_t i = 0; i < mask.size(); ++i) {
    one.first[i] = static_cast<char>(base[i] & mask[i]);
    one.last[i] = static_cast<char>(base[i] | ~mask[i]);
  }
  (network.size() == kNetwork4 ? seen.v4 : seen.v6).push_back(std::move(one));
}

// Returns false if `address` is the last of all.
bool advance(std::string& address) {
  for (auto byte = address.rbegin(); byte != address.rend(); ++byte) {
    *byte = static_cast<char>(*byte + 1);
    if (*byte != 0) return true;
  }
  return false;
}

// Returns true if each address is in one of the networks: two halves are as much as the whole.
bool cover_all(std::vector<Network> networks) {
  std::sort(networks.begin(), networks.end(), [](const Network& a, const Network& b) { return a.first < b.first; });
  if (networks.empty()) return false;
  std::string missing(networks.front().first.size(), '\0');  // the first address that no network had so far
  for (Network& network : networks) {
    if (network.first > missing) return false;
    if (network.last < missing) continue;
    missing = std::move(network.last);
    if (!advance(missing)) return true;
  }
  return false;
}

Subtrees read(STACK_OF(GENERAL_SUBTREE) * trees) {
  Subtrees seen;
  for (int i = 0; i < sk_GENERAL_SUBTREE_num(trees); ++i) {
    const GENERAL_NAME* base = sk_GENERAL_SUBTREE_value(trees, i)->base;
    if (base->type == GEN_IPADD) read_network(bytes_of(base->d.iPAddress), seen);
    if (base->type != GEN_DNS) continue;
    const std::string_view name = bytes_of(base->d.dNSName);
    seen.names = true;
    seen.all_names |= name.empty() || name == ".";
  }
  return seen;
}

}  // namespace

const char* unconstrained(X509* authority) {
  const ConstraintsPtr all(
      static_cast<NAME_CONSTRAINTS*>(X509_get_ext_d2i(authority, NID_name_constraints, nullptr, nullptr)));
  if (!all) return "its name constraints are unreadable";
  const Subtrees permitted = read(all->permittedSubtrees), excluded = read(all->excludedSubtrees);
  if (permitted.gaps || excluded.gaps) return "its name constraints have an address mask that is not a prefix";
  if (!excluded.all_names && (!permitted.names || permitted.all_names)) {
    return "its name constraints leave DNS names open, so it could sign for every name";
  }
  if (!cover_all(excluded.v4) && (!permitted.addresses || cover_all(permitted.v4))) {
    return "its name constraints leave IPv4 addresses open, so it could sign for every one";
  }
  if (!cover_all(excluded.v6) && (!permitted.addresses || cover_all(permitted.v6))) {
    return "its name constraints leave IPv6 addresses open, so it could sign for every one";
  }
  return nullptr;
}

}  // namespace carpool::proxy::tls
