// Names: the addresses of the plan's origins. They come, go and fail while a history runs. The oracles: a dial tries
// the address that should be next, a connection is opened ahead of demand only for an address that lacks one, an
// address that is gone or ejected gets no request, and the proxy counts the connections to each address as they are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pool/destination/destination.h"
#include "proxy/config/config.h"
#include "proxy/exchange/exchange.h"
#include "proxy/net/address_set.h"
#include "proxy/upstream/origin/origin_runtime.h"
#include "tests/sim/data_plane/plane_parts.h"

namespace carpool::test {

class Names {
 public:
  using Address = proxy::net::Address;
  using Links = std::list<OriginLink>;

  Names(Account& account, const Plan& plan) : account_(account), seed_(plan.seed * 2 + 1) {
    if (plan.addresses < 2) return;
    const std::uint32_t most = std::min(plan.addresses, 8U);
    for (std::uint32_t n = 0; n < plan.origins; ++n) {
      for (std::uint32_t at = 0; at < most; ++at) named_[n].insert(at);
    }
    most_ = most;
    for (const ClientPlan& client : plan.clients) {
      for (const RequestPlan& one : client.requests) {
        // A head in many pieces may have too many CONTINUATION frames, which ends its session.
        for (const ResponsePlan& response : one.responses)
          blames_ |= fails(response) || (plan.pieces != 0 && response.fields != 0);
      }
    }
  }
  bool many() const { return most_ > 1; }

  // ---- the world ----
  // The configuration names the addresses of now.
  void name(proxy::config::Config& config) const {
    if (!many()) return;
    for (proxy::config::OriginSettings& origin : config.origins) {
      const auto number = static_cast<std::uint32_t>(origin.origin.host.at(1) - '0');
      const auto named = named_.find(number);
      if (named == named_.end()) continue;
      origin.addresses.clear();
      for (const std::uint32_t at : named->second)
        origin.addresses.push_back("10.0." + std::to_string(number) + "." + std::to_string(at + 1) + ":80");
    }
  }
  // An address appears or disappears; the configuration that follows says so.
  void rename(Random& random) {
    if (!many()) return;
    std::set<std::uint32_t>& named = named_[pick(random, static_cast<std::uint32_t>(named_.size()))];
    const std::uint32_t at = pick(random, most_);
    if (named.erase(at) == 0 || named.empty()) named.insert(at);
  }
  // An address begins or ends to refuse connections.
  void toggle(Random& random) {
    if (!many()) return;
    const std::string text = "10.0." + std::to_string(pick(random, static_cast<std::uint32_t>(named_.size()))) + "." +
                             std::to_string(1 + pick(random, most_)) + ":80";
    if (down_.erase(text) == 0) down_.insert(text);
  }
  void raise_all() { down_.clear(); }

  // ---- a dial ----
  std::vector<Address> order(const proxy::OriginRuntime& origin, const Links& links, Instant now) {
    proxy::net::AddressSet& set = *origin.address_set;
    if (seeded_.insert(&set).second) set.draw_from(seed_);
    const std::vector<proxy::net::AddressSet::Info> before = set.all(now);
    std::vector<Address> ordered = set.order(origin.pinned, now);
    if (!ordered.empty()) check_first(origin, before, ordered.front(), links);
    return ordered;
  }
  // Returns the address that accepts the connection; none: all refuse it.
  std::optional<Address> reach(const proxy::OriginRuntime& origin, const std::vector<Address>& tries, bool refused,
                               Instant now) {
    proxy::net::AddressSet& set = *origin.address_set;
    std::optional<Address> reached;
    for (const Address& one : tries) {
      if (!refused && down_.count(one.text()) == 0) {
        reached = one;
        break;
      }
      set.failed(one, now);
      missed_.insert({&set, one.text()});
    }
    set.dial_ended(tries.front(), reached == tries.front(), now);
    if (reached != tries.front()) missed_.insert({&set, tries.front().text()});
    return reached;
  }
  void opened(const proxy::OriginRuntime& origin, const Address& at) { missed_.erase({origin.address_set, at.text()}); }
  // A connection is opened ahead of demand.
  void check_spread(const proxy::OriginRuntime& origin, const Links& links, Instant now) {
    std::uint32_t least = UINT32_MAX, most = 0;
    for (const auto& one : origin.address_set->all(now)) {
      if (one.ejections != 0 || one.gone) return;  // which of them counts depends on the last look
      const std::uint32_t open = open_to(origin, one.address, links);
      least = std::min(least, open);
      most = std::max(most, open);
    }
    if (least != UINT32_MAX && least != 0 && most < least + 2)
      account_.complain("a connection is opened for an address that lacks none");
  }

  // ---- after a turn ----
  void look(const proxy::OriginRuntime& origin, const Links& links, Instant now) {
    if (!many() || origin.pinned.empty()) return;
    std::size_t named = 0, ejected = 0;
    for (const auto& one : origin.address_set->all(now)) {
      if (one.open != open_to(origin, one.address, links))
        account_.complain("an address counts other connections than there are");
      named += one.gone ? 0 : 1;
      ejected += !one.gone && one.ejected ? 1 : 0;
      const std::pair key(origin.destination, one.address);
      if (!one.gone && !one.ejected) {
        out_.erase(key);
      } else {
        out_.emplace(key, now);
      }
    }
    // An ejection ends by itself; names may have ended since.
    if (ejected > most_ / 2 && 2 * ejected > named) account_.complain("more than half of the addresses are ejected");
  }
  void see(const proxy::Exchange& exchange, const Links& links) LOOP_ONLY {
    if (out_.empty() || !exchange.holds_lease() || exchange.info().origin == nullptr) return;
    for (const OriginLink& link : links) {
      if (link.connection == nullptr || link.connection->id() != exchange.info().connection || !link.peer) continue;
      const auto out = out_.find({link.destination, link.peer->text()});
      if (out != out_.end() && exchange.info().leased > out->second + kLeavesWithin)
        account_.complain("a request goes to an address that is gone or ejected");
    }
  }
  // Nothing is lent any more.
  void check_end(const proxy::OriginRuntime& origin, Instant now) {
    for (const auto& one : origin.address_set->all(now)) {
      if (one.busy != 0) account_.complain("an address counts requests that have ended");
    }
  }

 private:
  // A look each second, and steps of the clock; connections to a name that moves close one by one.
  static constexpr Duration kLeavesWithin = std::chrono::seconds(8);

  // An attempt that its address is blamed for.
  static bool fails(const ResponsePlan& response) {
    const bool whole = response.end == ResponseEnd::whole || response.end == ResponseEnd::surplus;
    return response.status == 0 || (response.status >= 502 && response.status <= 504) || !whole ||
           response.rogue != 0 || response.informational > 20;
  }
  static std::uint32_t open_to(const proxy::OriginRuntime& origin, const std::string& address, const Links& links) {
    return static_cast<std::uint32_t>(std::count_if(links.begin(), links.end(), [&](const OriginLink& link) {
      return link.connection != nullptr && link.destination == origin.destination && link.peer &&
             link.peer->text() == address;
    }));
  }
  static std::uint32_t load(const proxy::OriginRuntime& origin, const Address& address, const Links& links) {
    const auto dialing = std::count_if(links.begin(), links.end(), [&](const OriginLink& link) {
      return link.destination == origin.destination && link.place && !link.peer && !link.tries.empty() &&
             link.tries.front() == address;
    });
    return open_to(origin, address.text(), links) + static_cast<std::uint32_t>(dialing);
  }
  void check_first(const proxy::OriginRuntime& origin, const std::vector<proxy::net::AddressSet::Info>& before,
                   const Address& first, const Links& links) {
    const auto ejected = [&before](const Address& one) {
      return std::any_of(before.begin(), before.end(),
                         [&one](const auto& info) { return info.address == one.text() && info.ejected; });
    };
    std::vector<Address> usable;
    for (const Address& one : origin.pinned) {
      if (!ejected(one)) usable.push_back(one);
    }
    if (usable.empty()) return;
    if (ejected(first)) return account_.complain("a dial tries an address first that is ejected");
    const std::uint32_t mine = load(origin, first, links);
    bool heaviest = usable.size() > 1;
    for (const Address& one : usable) {
      const std::uint32_t its = load(origin, one, links);
      if (!(one == first) && its >= mine) heaviest = false;
      if (its == 0 && mine != 0 && !blames_ && missed_.count({origin.address_set, one.text()}) == 0)
        account_.complain("a dial leaves an address without connections");
    }
    if (heaviest) account_.complain("a dial tries the address first that has the most connections");
  }

  Account& account_;
  const std::uint64_t seed_;
  std::uint32_t most_ = 0;
  bool blames_ = false;  // some attempt counts as a failure of its address, which then waits for dials
  std::map<std::uint32_t, std::set<std::uint32_t>> named_;  // by origin
  std::set<std::string> down_;                              // they refuse connections
  std::set<const proxy::net::AddressSet*> seeded_;
  std::set<std::pair<const proxy::net::AddressSet*, std::string>> missed_;   // a dial did not reach them
  std::map<std::pair<const pool::Destination*, std::string>, Instant> out_;  // gone or ejected, since when
};

}  // namespace carpool::test
