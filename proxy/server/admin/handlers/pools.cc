#include "proxy/server/admin/handlers/pools.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "metrics/prometheus.h"
#include "pool/directory/explain_size.h"
#include "proxy/server/admin/json_list.h"

namespace carpool::proxy::admin {

std::string class_name(const PoolInfo& info, std::size_t i) {
  return i < info.classes.size() ? info.classes[i] : std::to_string(i);
}

namespace {

using pool::ConnectionStatus;
using Snapshot = pool::Destination::Snapshot;

// Returns the number of open connections, idle or borrowed, without those still connecting.
std::uint64_t open(const Snapshot& s) {
  return s.alive() - s.of(ConnectionStatus::connecting);
}

template <class Names, class Counts>
Json by_name(const Names& names, const Counts& counts) {
  Json json = Json::object();
  for (std::size_t i = 0; i < counts.size(); ++i) json[std::string(names[i])] = counts[i];
  return json;
}

Json json_of(const ConnectionInfo& info) {
  Json json;
  json["id"] = info.id;
  json["state"] = std::string(pool::name(info.state));
  json["opened"] = std::string(pool::name(info.opened));
  json["age_seconds"] = seconds(info.age);
  json["idle_seconds"] = seconds(info.idle);
  json["uses"] = info.uses;
  json["streams"] = info.streams;
  json["protocol"] = or_null(info.protocol);
  json["local"] = or_null(info.local);
  json["peer"] = or_null(info.peer);
  json["tls_version"] = or_null(info.tls_version);
  json["cipher"] = or_null(info.cipher);
  json["loop"] = info.loop;
  json["borrower"] = or_null(info.borrower);
  return json;
}

// Returns one bar per bound: the number of values at or below it and above the previous one; the last bar has no bound.
template <std::size_t N, class Measure>
Json histogram(const std::vector<ConnectionInfo>& all, const std::array<double, N>& bounds, Measure measure) {
  std::array<std::uint64_t, N + 1> counts{};
  for (const ConnectionInfo& one : all) {
    if (const std::optional<double> value = measure(one)) {
      ++counts[static_cast<std::size_t>(std::lower_bound(bounds.begin(), bounds.end(), *value) - bounds.begin())];
    }
  }
  Json bars = Json::array();
  for (std::size_t i = 0; i <= N; ++i) {
    bars.push_back({{"up_to", i < N ? Json(bounds[i]) : Json(nullptr)}, {"count", counts[i]}});
  }
  return bars;
}

Json histograms(const std::vector<ConnectionInfo>& all) {
  constexpr std::array<double, 8> kSeconds{0.1, 1, 5, 15, 60, 300, 1800, 7200};
  constexpr std::array<double, 7> kUses{0, 1, 10, 100, 1000, 10'000, 100'000};
  const auto age = [](const ConnectionInfo& one) -> std::optional<double> { return seconds(one.age); };
  const auto idle = [](const ConnectionInfo& one) -> std::optional<double> {
    if (one.state != ConnectionStatus::idle && one.state != ConnectionStatus::expired_idle) return std::nullopt;
    return seconds(one.idle);
  };
  const auto uses = [](const ConnectionInfo& one) -> std::optional<double> { return one.uses; };
  Json json;
  json["age_seconds"] = histogram(all, kSeconds, age);
  json["idle_seconds"] = histogram(all, kSeconds, idle);
  json["uses"] = histogram(all, kUses, uses);
  return json;
}

// Lists the classes of the snapshot, because a reload may just have changed those of the limits.
Json classes_of(const PoolInfo& info) {
  Json list = Json::array();
  for (std::size_t i = 0; i < info.snapshot.class_count; ++i) {
    const Snapshot::Class& one = info.snapshot.classes[i];
    Json json = {{"name", class_name(info, i)}, {"waiting", one.waiting}, {"leases", one.leases}, {"limit", one.limit}};
    add_old_names(json, {{"limit", "share"}});
    list.push_back(std::move(json));
  }
  return list;
}

void add_pause(Json& json, const std::optional<Snapshot::Paused>& paused) {
  json["paused"] = paused.has_value();
  json["draining"] = paused && paused->drains;
  json["paused_seconds"] = paused ? Json(seconds(paused->age)) : Json(nullptr);
  json["resumes_in_seconds"] = paused && paused->left ? Json(seconds(*paused->left)) : Json(nullptr);
}

Json auto_size_of(const Snapshot& s) {
  if (!s.auto_size) return nullptr;
  const pool::SizeHistory& history = s.auto_size->history;
  Json last = Json::array();
  for (std::size_t back = 0; back < history.size(); ++back) {
    const pool::SizeChange& change = history.last(back);
    last.push_back({{"ago_seconds", seconds(std::max(Duration::zero(), s.auto_size->now - change.when))},
                    {"from", change.from},
                    {"to", change.to},
                    {"reason", std::string(pool::name(change.reason))},
                    {"why", pool::why_resized(change)}});
  }
  return {{"min_size", s.auto_size->min_size},
          {"max_size", s.auto_size->max_size},
          {"changes", by_name(pool::kSizeReasons, history.counts())},
          {"last", std::move(last)}};
}

void add_cool_down(Json& json, const Snapshot& s) {
  const auto& cooling = s.cooling_down;
  json["cooling_down"] = cooling.has_value();
  json["cool_down_status"] = cooling ? Json(cooling->status) : Json(nullptr);
  json["cools_for_seconds"] = cooling ? Json(seconds(cooling->left)) : Json(nullptr);
  json["cool_downs"] = s.cool_downs;
}

Json failing_of(const PoolInfo& info) {
  if (!info.failing) return nullptr;
  const PoolInfo::Failing& failing = *info.failing;
  return {{"requests", failing.requests},
          {"failed", failing.failed},
          {"last_seconds", failing.time ? Json(seconds(*failing.time)) : Json(nullptr)},
          {"reason", or_null(std::string(failing.reason))}};
}

Json credentials_of(const CredentialsState& credentials) {
  return {
      {"stale_files", credentials.stale_files},
      {"token", or_null(credentials.token)},
      {"token_expires_seconds", credentials.token_expires ? Json(seconds(*credentials.token_expires)) : Json(nullptr)},
      {"failure", or_null(credentials.failure)}};
}
}  // namespace

Json json_of(const PoolInfo& info) {
  const Snapshot& s = info.snapshot;
  Json json;
  json["origin"] = info.origin;
  json["active"] = open(s);
  json["borrowable"] = s.of(ConnectionStatus::idle);
  json["borrowed"] = s.leases();  // each stream counts as one
  json["connecting"] = s.of(ConnectionStatus::connecting);
  json["waiting"] = s.waiting;
  json["waiting_tunnels"] = s.waiting_for_place;
  json["max_wait_seconds"] = seconds(s.max_wait);
  json["size"] = s.size;
  json["auto_size"] = auto_size_of(s);
  json["peak"] = s.peak;
  json["borrows"] = s.borrows;
  json["restores"] = s.restores;
  json["created"] = s.created;
  json["leaks"] = s.leaks;
  json["saved"] = {
      {"dials", info.saved.dials}, {"seconds", seconds(info.saved.time)}, {"cpu_seconds", seconds(info.saved.cpu)}};
  json["rate_limited"] = {{"requests", info.limited.requests}, {"connections", info.limited.connections}};
  json["connections"] = by_name(pool::kConnectionStatusNames, s.connections);
  json["opened"] = by_name(pool::kOpenCauseNames, s.opened);
  json["closed"] = by_name(pool::kCloseCauseNames, s.closed);
  json["failures"] = by_name(pool::kFailureReasonNames, s.failures);
  json["learned_idle_timeout_seconds"] =
      info.learned_idle_timeout ? Json(seconds(*info.learned_idle_timeout)) : Json(nullptr);
  json["probing"] = s.probing;
  add_pause(json, s.paused);
  add_cool_down(json, s);
  json["undialed"] = s.undialed;
  json["failing"] = failing_of(info);
  json["ejected_addresses"] = info.addresses.ejected;
  if (s.class_count != 0) json["classes"] = classes_of(info);
  if (info.credentials) json["credentials"] = credentials_of(*info.credentials);
  return json;
}

Response pools_response(std::vector<PoolInfo> pools) {
  return list_response("pools", std::move(pools), [](const PoolInfo& pool) { return json_of(pool); });
}

Response pool_response(const PoolInfo& pool, const std::vector<ConnectionInfo>& connections,
                       const std::vector<AddressInfo>& addresses) {
  Json json = json_of(pool);
  json["histograms"] = histograms(connections);
  json["addresses"] = Json::array();
  for (const AddressInfo& one : addresses) {
    const Json response = one.response == Duration::zero() ? Json() : Json(seconds(one.response));
    json["addresses"].push_back({{"address", one.address},
                                 {"state", std::string(one.state)},
                                 {"open", one.open},
                                 {"failures", one.failures},
                                 {"ejections", one.ejections},
                                 {"busy", one.busy},
                                 {"requests", one.requests},
                                 {"response_seconds", response},
                                 {"share", one.share}});
  }
  return json_response(200, json);
}

Response connections_response(std::vector<ConnectionInfo> connections) {
  return list_response("connections", std::move(connections), [](const ConnectionInfo& one) { return json_of(one); });
}

namespace {
void add_to(Json& sum, std::uint64_t count) {
  sum = (sum.is_null() ? std::uint64_t{0} : sum.get<std::uint64_t>()) + count;
}

void add_to(Json& sums, const Snapshot& s) {
  // Every created connection that is no longer open is closed; a failed dial was never created.
  const std::uint64_t active = open(s), closed = s.created - std::min(active, s.created);
  add_to(sums["active"], active);
  add_to(sums["borrows"], s.borrows);
  add_to(sums["restores"], s.restores);
  add_to(sums["created"], s.created);
  add_to(sums["closed"], closed);
  add_to(sums["failures"], s.failed_total());
}
}  // namespace

Response pool_metrics_response(const CountedPools& counted) {
  Json json = Json::object();
  for (const PoolInfo& pool : counted.pools) add_to(json[pool.origin], pool.snapshot);
  for (const PoolInfo& pool : counted.ended) add_to(json[pool.origin], pool.snapshot);
  return json_response(200, json);
}

}  // namespace carpool::proxy::admin
