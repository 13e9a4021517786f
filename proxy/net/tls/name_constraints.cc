#include "proxy/net/tls/name_constraints.h"

#include <openssl/x509v3.h>

#include <algorithm>
#include <memory>
#include <string_view>

namespace carpool::proxy::tls {
namespace {

constexpr std::size_t kNetwork4 = 8, kNetwork6 = 32;  // an address and its mask

using ConstraintsPtr = std::unique_ptr<NAME_CONSTRAINTS, FreeWith<NAME_CONSTRAINTS_free>>;

std::string_view bytes_of(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

// The bounds of one list of subtrees, the permitted or the excluded ones, for each kind of name.
struct Subtrees {
  bool names = false, addresses = false;  // it has one of this kind
  bool all_names = false, all_v4 = false, all_v6 = false;
};

void read_network(std::string_view network, Subtrees& seen) {
  seen.addresses = true;
  const std::string_view mask = network.substr(network.size() / 2);
  if (!std::all_of(mask.begin(), mask.end(), [](char byte) { return byte == 0; })) return;
  seen.all_v4 |= network.size() == kNetwork4;
  seen.all_v6 |= network.size() == kNetwork6;
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
  if (!excluded.all_names && (!permitted.names || permitted.all_names)) {
    return "its name constraints leave DNS names open, so it could stand for every name";
  }
  if (!excluded.all_v4 && (!permitted.addresses || permitted.all_v4)) {
    return "its name constraints leave IPv4 addresses open, so it could stand for every one";
  }
  if (!excluded.all_v6 && (!permitted.addresses || permitted.all_v6)) {
    return "its name constraints leave IPv6 addresses open, so it could stand for every one";
  }
  return nullptr;
}

}  // namespace carpool::proxy::tls
