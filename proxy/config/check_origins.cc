// The checks of origins, and of the defaults that they inherit: [pool], [upstream] and [request].
#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>

#include "proxy/config/check.h"
#include "proxy/config/check_credentials.h"
#include "proxy/config/check_rules.h"
#include "proxy/config/text.h"

namespace carpool::proxy::config {
namespace {

constexpr std::size_t kMaxClasses = 4;  // the limit of pool::ClassQuota

class OriginChecks final : private CheckRules {
 public:
  OriginChecks(Reading& reading, const Places& places, const std::string& file) : CheckRules(reading, places, file) {}

  void run() {
    pool_fits(config_.pool, "pool");
    upstream_is_complete(config_.upstream, "upstream");
    note_identity(config_.upstream.tls, "upstream.tls.");
    origins_are_verified(config_.upstream, "upstream");
    no_leniency_for_all();
    attempts_are_limited(config_.request, "request");
    for (std::size_t i = 0; i < config_.origins.size(); ++i) hosts_.try_emplace(config_.origins[i].origin.host, i);
    for (std::size_t i = 0; i < config_.origins.size(); ++i) origin_is_whole(i);
    origins_are_listed_once();
    aliases_are_listed_once();
  }

 private:
  void pool_fits(const PoolSettings& pool, const std::string& prefix) {
    const std::string largest = prefix + (pool.auto_size() ? ".max_size" : ".size");
    at_most(prefix + ".min_idle", pool.min_idle, largest, pool.largest());
    at_most(prefix + ".warm_up.size", pool.warm_up.size, largest, pool.largest());
    if (pool.auto_size()) at_most(prefix + ".min_size", pool.min_size, prefix + ".max_size", pool.max_size);
    classes_are_usable(pool.classes, prefix + ".classes");
  }

  void classes_are_usable(const std::vector<std::string>& classes, const std::string& key) {
    if (places_.invalid(key) || classes.empty()) return;
    if (classes.size() == 1 || classes.size() > kMaxClasses) {
      return error(
          key, "lists " + std::to_string(classes.size()) + ", expected none, or 2 to " + std::to_string(kMaxClasses));
    }
    listed_once(classes, key, "class");
  }

  void upstream_is_complete(const Upstream& upstream, const std::string& prefix) {
    const std::string tls = prefix + ".tls.";
    identity_is_whole(upstream.tls, tls);
    protocols_are_usable(upstream.protocols, prefix + ".protocols");
    const std::string key = prefix + ".proxy_credentials";
    // An origin that is reached directly inherits the credentials.
    if (!places_.given(key) || places_.invalid(prefix + ".proxy")) return;
    if (upstream.proxy.empty()) return error(key, "is set without proxy, expected both or none");
    if (std::string why = refused_proxy_credentials(upstream.proxy_credentials); !why.empty())
      error(key, std::move(why));
  }

  void protocols_are_usable(const std::vector<std::string>& protocols, const std::string& key) {
    if (places_.invalid(key)) return;
    if (protocols.empty()) return error(key, R"(is empty, expected "h1", "h2" or both)");
    listed_once(protocols, key, "protocol");
  }

  // Notes only files that the table itself names: an origin inherits the others, which are checked where they are set.
  void note_identity(const Tls& tls, const std::string& prefix) {
    const auto any = [&](const auto& is) { return is("cert_file") || is("key_file") || is("ca_file"); };
    if (any([&](const char* key) { return places_.invalid(prefix + key); })) return;
    const bool given = any([&](const char* key) { return places_.given(prefix + key); });
    if (given && tls.cert_file.empty() == tls.key_file.empty()) {
      note_certificates(tls, tls.ca_file, prefix, "ca_file").verify = tls.verify;
    }
  }

  // Reported where the file sets it, so an origin that inherits it adds no warning.
  void origins_are_verified(const Upstream& upstream, const std::string& prefix) {
    const std::string key = prefix + ".tls.verify";
    if (upstream.tls.verify || !places_.given(key)) return;
    warning(key,
            "is false, so any host that answers for the origin reads and changes what is sent, "
            "expected true; ca_file names an authority of your own");
  }

  // Leniency for one old origin must not apply to all others.
  void no_leniency_for_all() {
    const std::string key = "upstream.lenient";
    if (config_.upstream.lenient.empty() || places_.invalid(key)) return;
    error(key, "applies to single origins only, expected it in [origin.upstream]");
  }

  void origin_is_whole(std::size_t i) {
    const OriginSettings& origin = config_.origins[i];
    const std::string key = item_key("origin", i);
    if (!(origin.pool == config_.pool)) pool_fits(origin.pool, key + ".pool");
    if (!(origin.upstream == config_.upstream)) upstream_is_complete(origin.upstream, key + ".upstream");
    if (origin.origin.scheme == pool::Scheme::https) {
      origins_are_verified(origin.upstream, key + ".upstream");
      note_identity(origin.upstream.tls, key + ".upstream.tls.");
    }
    if (origin.origin.scheme == pool::Scheme::tcp) tunnels_alone(key);
    if (origin.origin.scheme != pool::Scheme::tcp) has_no_tcp_size(key);
    attempts_are_limited(origin.request, key + ".request");
    aliases_are_no_other_host(i);
    if (origin.intercept) may_be_intercepted(origin, key);
    credentials_are_sendable(origin, key);
  }

  void credentials_are_sendable(const OriginSettings& origin, const std::string& prefix) {
    if (places_.invalid(prefix + ".uri")) return;
    for (auto& [below, text] : credential_errors(origin, config_)) {
      const std::string key = std::string(prefix).append(1, '.').append(below);
      if (!places_.invalid(key)) error(key, std::move(text));
    }
  }

  void tunnels_alone(const std::string& origin) {
    for (const std::string_view useless : kRefusedForTcp) {
      const std::string key = std::string(origin).append(1, '.').append(useless);
      if (places_.given(key)) error(key, "does not apply to a tcp origin, which carries only tunnels");
    }
  }

  void has_no_tcp_size(const std::string& origin) {
    const std::string key = std::string(origin).append(1, '.').append(kTcpSize);
    if (places_.given(key) && !places_.invalid(origin + ".uri"))
      error(key, "applies to a tcp origin only, expected size");
  }

  // The client sees the authority's certificate instead of the origin's, so only carpool can verify the origin.
  void may_be_intercepted(const OriginSettings& origin, const std::string& prefix) {
    const std::string key = prefix + ".intercept";
    if (places_.invalid(prefix + ".uri") || places_.invalid("intercept.ca_dir")) return;
    if (origin.origin.scheme != pool::Scheme::https) return error(key, "is set, expected an https origin");
    if (origin.origin.is_ip_literal()) return error(key, "is set for an address, expected an origin with a name");
    if (!origin.upstream.tls.verify)
      return error(key, "is set beside upstream.tls.verify = false, expected only one of them");
    if (config_.intercept.ca_dir.empty()) return error(key, "is set without intercept.ca_dir, expected both or none");
    reading_.intercepted.push_back(
        {origin.origin.host, origin.origin.label(), at(key, {}), at("intercept.ca_dir", {})});
  }

  void origins_are_listed_once() {
    std::map<std::string, std::string> seen;
    for (std::size_t i = 0; i < config_.origins.size(); ++i) {
      const std::string key = item_key("origin", i) + ".uri";
      if (!places_.given(key)) continue;
      const std::string label = config_.origins[i].origin.label();
      const auto [first, added] = seen.emplace(label, key);
      if (!added)
        error(key, in_quotes(label) + " is listed already (" + line_of(first->second) + "), expected each origin once");
    }
  }

  // The origin whose host is the alias still gets its requests over https, or with its port.
  void aliases_are_no_other_host(std::size_t i) {
    const OriginSettings& one = config_.origins[i];
    for (std::size_t j = 0; j < one.alias.size(); ++j) {
      const auto other = hosts_.find(one.alias[j]);
      if (other == hosts_.end() || one.alias[j] == one.origin.host) continue;
      warning(item_key(item_key("origin", i) + ".alias", j),
              in_quotes(one.alias[j]) + " is the host of another origin (" +
                  line_of(item_key("origin", other->second) + ".uri") + "), expected a name of its own");
    }
  }

  void aliases_are_listed_once() {
    std::map<std::string, std::string> seen;
    for (std::size_t i = 0; i < config_.origins.size(); ++i) {
      const std::vector<std::string>& aliases = config_.origins[i].alias;
      for (std::size_t j = 0; j < aliases.size(); ++j) {
        const std::string key = item_key(item_key("origin", i) + ".alias", j);
        const auto [first, added] = seen.emplace(aliases[j], key);
        if (added) continue;
        error(key, in_quotes(aliases[j]) + " is an alias already (" + line_of(first->second) +
                       "), expected each alias once");
      }
    }
  }

  // request.per_try_timeout decides when an attempt is hedged. Reported where the file sets one of both.
  void attempts_are_limited(const Request& request, const std::string& prefix) {
    const std::string key = prefix + ".hedge", limit = prefix + ".per_try_timeout";
    if (!request.hedge || request.per_try_timeout > Duration::zero()) return;
    if (places_.invalid(key) || places_.invalid(limit)) return;
    if (places_.given(key)) return error(key, "is set without per_try_timeout, expected both or none");
    if (places_.given(limit)) error(limit, "is zero beside request.hedge, expected a limit, or hedge = false");
  }

  std::unordered_map<std::string_view, std::size_t> hosts_;  // the first origin of each host
};

}  // namespace

bool only_inherited(const OriginSettings& origin, const Section& section, const Setting& setting) {
  const std::string key = (section.path == "origin" ? "" : std::string(section.path) + '.').append(setting.key);
  if (key == "upstream.proxy_credentials") return origin.upstream.proxy.empty();
  if (key == kTcpSize) return origin.origin.scheme != pool::Scheme::tcp;
  const auto& refused = kRefusedForTcp;
  return origin.origin.scheme == pool::Scheme::tcp && std::find(refused.begin(), refused.end(), key) != refused.end();
}

void check_origins(Reading& reading, const Places& places, const std::string& file) {
  OriginChecks(reading, places, file).run();
}

}  // namespace carpool::proxy::config
