// OriginRuntime: one origin under one configuration, as loops use it: its pool, settings, TLS identity and the limits
// that its requests share.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
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
class TlsIdentity;

// ProtocolSet: the permitted protocols of an origin, by upstream.protocols and upstream.lenient.
struct ProtocolSet {
  bool h1 = true;
  bool h2 = false;
  bool bare_lf = false;  // upstream.lenient
  bool operator==(const ProtocolSet&) const = default;
};

// Immutable after creation, except for the members that synchronise themselves.
struct OriginRuntime {
  pool::Destination* destination = nullptr;
  config::PoolSettings pool;
  config::Request request;
  std::string authority;       // Host for this origin
  TlsIdentity* tls = nullptr;  // null: plain text
  ProtocolSet protocols;
  const net::ParentProxy* parent = nullptr;  // the origin is reached through it; null: directly
  std::string absolute;  // "http://host:port", before the path of requests that `parent` gets; empty: origin form
  std::vector<net::Address> pinned;
  std::vector<std::string> allow;        // of the configuration
  std::vector<http::RequestRule> rules;  // of `allow`
  bool restricted = false;               // only what a rule matches is forwarded
  bool streaming = false;                // its event streams, gRPC calls and tunnels may be silent
  std::atomic<std::uint32_t> dials{0};   // in progress, all loops together; relaxed: a hint for deadlines
  Credentials* credentials = nullptr;    // guards itself; null: its requests get no fields
  // Only egress.report_only permits its name or an address that was dialed; relaxed: for counts.
  std::atomic<bool> reported{false};
  metrics::OriginSlot slot = metrics::kOtherOrigin;
  net::AddressSet* address_set = nullptr;  // guards itself; one per destination
  ConnectCost connect_cost;                // guards itself
  mutable RetryBudget retries;             // guards itself
  RateLimiter requests, connects;          // each guards itself
  RetryConditions retry_on;                // of request.retry_on
  // A reload gave the origin another pool, whose connections are verified in another way: no request that still waits
  // may use this one's. Relaxed: a loop that sees it asks the registry, which locks; the message to the loops that ends
  // a reload follows the change.
  std::atomic<bool> replaced{false};

  // Returns true if the parent proxy is asked for a tunnel to the origin.
  bool through_connect() const { return parent != nullptr && absolute.empty(); }
  bool is_replaced() const { return replaced.load(std::memory_order_relaxed); }

  bool dialing() const { return dials.load(std::memory_order_relaxed) != 0; }
  bool same(const OriginRuntime& other) const {
    return destination == other.destination && pool == other.pool && request == other.request && tls == other.tls &&
           protocols == other.protocols && parent == other.parent && pinned == other.pinned &&
           restricted == other.restricted && streaming == other.streaming && allow == other.allow &&
           credentials == other.credentials;
  }
  // `path`: of the request's target; a tunnel has none.
  bool allows(std::string_view method, std::string_view path) const {
    const auto matches = [&](const http::RequestRule& rule) { return rule.matches(method, path); };
    return !restricted || std::any_of(rules.begin(), rules.end(), matches);
  }
};

}  // namespace carpool::proxy
