// OriginRuntime: one origin under one configuration, as loops use it: its pool, settings, TLS identity, and the limits
// that its requests share.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/events.h"
#include "pool/destination/destination.h"
#include "proxy/config/config.h"
#include "proxy/http/request_rule.h"
#include "proxy/net/address.h"
#include "proxy/upstream/origin/connect_cost.h"
#include "proxy/upstream/origin/rate_limiter.h"
#include "proxy/upstream/origin/retry_budget.h"

namespace carpool::proxy {

namespace net {
class AddressSet;
struct ParentProxy;
}  // namespace net
class Credentials;
class ReceivedVia;
class TlsIdentity;

// ProtocolSet: the permitted protocols of an origin, by upstream.protocols and upstream.lenient.
struct ProtocolSet {
  bool h1 = true;
  bool h2 = false;
  bool bare_lf = false;  // upstream.lenient
  bool operator==(const ProtocolSet&) const = default;
};

struct FreeReceivedVia {
  void operator()(ReceivedVia* via) const;
};

// Immutable after creation, except for the members that are thread-safe themselves.
struct OriginRuntime {
  pool::Destination* destination = nullptr;
  config::PoolSettings pool;
  config::Request request;
  std::string authority;       // value of Host for this origin
  TlsIdentity* tls = nullptr;  // null for plain text
  ProtocolSet protocols;
  const net::ParentProxy* parent = nullptr;  // parent proxy through which the origin is reached; null if directly
  std::string absolute;  // "http://host:port", which precedes the path in requests to `parent`; empty: origin form
  std::vector<net::Address> pinned;
  std::vector<std::string> allow;        // as in the configuration
  std::vector<http::RequestRule> rules;  // parsed from `allow`
  bool restricted = false;               // only requests that match a rule are forwarded
  bool streaming = false;                // event streams, gRPC calls and tunnels may be silent
  std::atomic<std::uint32_t> dials{0};   // dials in progress on all loops; relaxed: a hint for deadlines
  Credentials* credentials = nullptr;    // thread-safe; null: no fields are added to requests
  // Set once a name or an address that only egress.report_only permits was used. Relaxed: prevents a second log line.
  std::atomic<bool> reported{false};
  metrics::OriginSlot slot = metrics::kOtherOrigin;
  net::AddressSet* address_set = nullptr;                      // thread-safe; one per destination
  ConnectCost connect_cost;                                    // thread-safe
  mutable RetryBudget retries;                                 // thread-safe
  RateLimiter requests, connects;                              // each is thread-safe
  mutable RateLimiter yields;                                  // of streamed bodies on sessions; thread-safe
  std::unique_ptr<ReceivedVia, FreeReceivedVia> received_via;  // thread-safe; null unless through_connect()
  RetryConditions retry_on;                                    // of request.retry_on
  // Set when a reload gave the origin another pool, whose connections are verified differently, so that no request that
  // still waits may use a connection of this one. Relaxed: a loop that sees it asks the registry, which locks, and the
  // message that ends a reload on each loop is posted after the change.
  std::atomic<bool> replaced{false};

  // Returns true if requests reach the origin through a CONNECT tunnel of the parent proxy.
  bool through_connect() const { return parent != nullptr && absolute.empty(); }
  bool is_replaced() const { return replaced.load(std::memory_order_relaxed); }

  // Continues the limits of the runtime that this one takes the place of. Must be called before loops use this one.
  void follow(OriginRuntime& before) {
    const bool outlives = before.destination == destination;
    retries.follow(before.retries, outlives);
    requests.follow(before.requests, outlives);
    connects.follow(before.connects, outlives);
  }

  bool dialing() const { return dials.load(std::memory_order_relaxed) != 0; }
  bool same(const OriginRuntime& other) const {
    return destination == other.destination && pool == other.pool && request == other.request && tls == other.tls &&
           protocols == other.protocols && parent == other.parent && pinned == other.pinned &&
           restricted == other.restricted && streaming == other.streaming && allow == other.allow &&
           credentials == other.credentials;
  }
  // `path`: that of the request's target. A tunnel has none.
  bool allows(std::string_view method, std::string_view path) const {
    const auto matches = [&](const http::RequestRule& rule) { return rule.matches(method, path); };
    return !restricted || std::any_of(rules.begin(), rules.end(), matches);
  }
};

}  // namespace carpool::proxy
