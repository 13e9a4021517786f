// One function per rule, each with its own message. Rules skip a key that is already reported, because the
// configuration holds its default instead of the written value.
#include "proxy/config/check.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "proxy/config/check_credentials.h"
#include "proxy/config/text.h"
#include "proxy/config/text_format.h"

namespace carpool::proxy::config {
namespace {

constexpr std::size_t kMostClasses = 4;  // the limit of pool::ClassQuota

class Checker {
 public:
  Checker(Reading& reading, const Places& places, const std::string& file)
      : reading_(reading), config_(reading.config), places_(places), file_(file) {}

  void run() {
    addresses_differ();
    for (std::size_t i = 0; i < config_.listen.size(); ++i) listener_is_whole(i);
    admin_has_a_token();
    server_is_complete(config_.admin, "admin.");
    if (config_.admin.enabled) note_server(config_.admin, "admin.");
    token_is_private(config_.admin, "admin.token_file");
    pool_fits(config_.pool, "pool");
    listeners_classes_are_known();
    upstream_is_complete(config_.upstream, "upstream");
    note_identity(config_.upstream.tls, "upstream.tls.");
    origins_are_verified(config_.upstream, "upstream");
    no_leniency_for_all();
    for (std::size_t i = 0; i < config_.origins.size(); ++i) origin_is_whole(i);
    origins_are_listed_once();
    aliases_are_listed_once();
    idle_fits_the_total();
    ranges_are_in_order();
    watermarks_are_in_order();
    log_has_one_target();
  }

 private:
  ConfigError at(const std::string& key, std::string text) const {
    const Place place = places_.of(key);
    return {file_, place.line, place.column, without_numbers(key), std::move(text)};
  }
  void error(const std::string& key, std::string text) { reading_.errors.push_back(at(key, std::move(text))); }

  // Returns "line 12": the place of the other key in a conflict of two.
  std::string line_of(const std::string& key) const { return "line " + std::to_string(places_.of(key).line); }

  void addresses_differ() {
    std::map<std::string, std::string> seen;  // address -> key
    const auto once = [&](const std::string& address, const std::string& key) {
      if (address.empty() || any_port(address) || places_.wrong(key)) return;
      const auto [first, added] = seen.emplace(address, key);
      if (added) return;
      error(key, in_quotes(address) + " is " + without_numbers(first->second) + " already (" + line_of(first->second) +
                     "), expected an address of its own");
    };
    for (std::size_t i = 0; i < config_.listen.size(); ++i) {
      once(config_.listen[i].address, item_key("listen", i) + ".address");
    }
    if (config_.admin.enabled) once(config_.admin.address, "admin.address");
    once(config_.metrics.address, "metrics.address");
    once(config_.handover.address, "handover.address");
  }

  void listener_is_whole(std::size_t i) {
    listener_is_not_open(i);
    const Listen& listen = config_.listen[i];
    const std::string prefix = item_key("listen", i) + '.';
    of_a_unix_socket(listen, prefix + "mode", listen.mode);
    of_a_unix_socket(listen, prefix + "group", listen.group);
    peers_are_trusted(listen, prefix);
    server_is_complete(listen, prefix);
    note_server(listen, prefix);
    credentials_are_private(listen, prefix + "credentials_file");
    fixed_origin_is_judged(listen, prefix + "origin");
  }

  // check_fixed_origins() (proxy/net) checks whether the egress rules permit the origin.
  void fixed_origin_is_judged(const Listen& listen, const std::string& key) {
    if (listen.origin.empty() || places_.wrong(key)) return;
    if (places_.wrong("egress.default") || places_.wrong("egress.allow") || places_.wrong("egress.deny")) return;
    FixedOrigin fixed{listen.origin, {}, at(key, {})};
    for (const OriginSettings& origin : config_.origins) {
      if (origin.origin.label() == listen.origin) fixed.addresses = origin.addresses;
    }
    reading_.fixed.push_back(std::move(fixed));
  }

  void credentials_are_private(const Listen& listen, const std::string& key) {
    if (listen.credentials_file.empty() || places_.wrong(key)) return;
    reading_.credentials.push_back({listen.credentials_file, at(key, {})});
    const bool local = unix_address(listen.address) || loopback_address(listen.address);
    if (local || !listen.cert_file.empty()) return;
    reading_.warnings.push_back(at(key, "is set without cert_file, so passwords and tokens travel in plain text to " +
                                            in_quotes(listen.address) + ", expected cert_file and key_file"));
  }

  // A peer that may announce a client chooses the address that logs and origins see.
  void peers_are_trusted(const Listen& listen, const std::string& prefix) {
    if (places_.wrong(prefix + "address") || places_.wrong(prefix + "trusted")) return;
    if (listen.proxy_protocol && listen.trusted.empty() && !unix_address(listen.address)) {
      error(prefix + "proxy_protocol", "is set without trusted, expected the load balancer's addresses there");
    }
    if (!listen.proxy_protocol && !listen.trusted.empty()) {
      error(prefix + "trusted", "is set without proxy_protocol, expected both or none");
    }
  }

  void of_a_unix_socket(const Listen& listen, const std::string& key, const std::string& value) {
    if (value.empty() || unix_address(listen.address)) return;
    error(key, "is set beside the address " + in_quotes(listen.address) + R"(, expected "unix:/path")");
  }

  // `one` requires `other`, both keys of the same table.
  void needs(const std::string& prefix, const std::string& one, const char* key, const std::string& other,
             const char* missing) {
    if (one.empty() || !other.empty() || places_.wrong(prefix + missing)) return;
    error(prefix + key, std::string("is set without ") + missing + ", expected both or none");
  }

  // A certificate and its key are set together. `prefix` precedes the keys of `table`.
  template <class Table>
  void identity_is_whole(const Table& table, const std::string& prefix) {
    needs(prefix, table.cert_file, "cert_file", table.key_file, "key_file");
    needs(prefix, table.key_file, "key_file", table.cert_file, "cert_file");
  }

  // `table`: a listener or [admin].
  template <class Table>
  void server_is_complete(const Table& table, const std::string& prefix) {
    identity_is_whole(table, prefix);
    needs(prefix, table.client_ca_file, "client_ca_file", table.cert_file, "cert_file");
  }

  template <class Table>
  void note_server(const Table& table, const std::string& prefix) {
    if (table.cert_file.empty() || table.key_file.empty() || places_.wrong(prefix + "client_ca_file")) return;
    note_certificates(table, table.client_ca_file, prefix, "client_ca_file").server = true;
  }

  // Notes only files that the table itself names: an origin inherits the others, which are checked where they are set.
  void note_identity(const Tls& tls, const std::string& prefix) {
    const auto any = [&](const auto& is) { return is("cert_file") || is("key_file") || is("ca_file"); };
    if (any([&](const char* key) { return places_.wrong(prefix + key); })) return;
    const bool given = any([&](const char* key) { return places_.given(prefix + key); });
    if (given && tls.cert_file.empty() == tls.key_file.empty()) {
      note_certificates(tls, tls.ca_file, prefix, "ca_file").verify = tls.verify;
    }
  }

  // check_certificates() (proxy/downstream) checks whether the files can be used.
  template <class Table>
  NamedCertificates& note_certificates(const Table& table, const std::string& authorities, const std::string& prefix,
                                       const char* key) {
    return reading_.certificates.emplace_back(NamedCertificates{table.cert_file, table.key_file, authorities, false,
                                                                true, at(prefix + "cert_file", {}),
                                                                at(prefix + "key_file", {}), at(prefix + key, {})});
  }

  // An open proxy gives any client access to its network.
  void listener_is_not_open(std::size_t i) {
    const Listen& listen = config_.listen[i];
    const std::string key = item_key("listen", i) + ".address";
    if (places_.wrong(key) || unix_address(listen.address) || loopback_address(listen.address)) return;
    const bool fixed = !listen.origin.empty() && !listen.connect;
    const bool ruled = config_.egress.default_ == Verdict::deny && !config_.egress.report_only;
    if (listen.open || fixed || ruled || !listen.credentials_file.empty()) return;
    error(key, in_quotes(listen.address) +
                   R"( is not loopback and would be an open proxy, expected one of egress.default = "deny", )"
                   "a fixed origin with connect = false, a credentials_file, or open = true");
  }

  void admin_has_a_token() {
    const Admin& admin = config_.admin;
    if (!admin.enabled || places_.wrong("admin.address") || places_.wrong("admin.token_file")) return;
    if (unix_address(admin.address) || loopback_address(admin.address)) return;  // the file is not read
    if (!admin.token_file.empty()) return reading_.tokens.push_back({admin.token_file, at("admin.token_file", {})});
    error("admin.address", in_quotes(admin.address) + " is not loopback, expected a token_file");
  }

  void token_is_private(const Admin& admin, const std::string& key) {
    if (!admin.enabled || admin.token_file.empty() || !admin.cert_file.empty()) return;
    for (const char* const other : {"admin.address", "admin.token_file", "admin.cert_file"}) {
      if (places_.wrong(other)) return;
    }
    if (unix_address(admin.address) || loopback_address(admin.address)) return;
    reading_.warnings.push_back(at(key, "is set without cert_file, so the token travels in plain text to " +
                                            in_quotes(admin.address) + ", expected cert_file and key_file"));
  }

  void at_most(const std::string& key, std::uint32_t value, const std::string& other, std::uint32_t most) {
    if (value <= most || places_.wrong(key) || places_.wrong(other)) return;
    const std::string shown = places_.given(key) ? key : other;
    error(shown, without_numbers(key) + " = " + std::to_string(value) + " is more than " + without_numbers(other) +
                     " = " + std::to_string(most) + ", expected at most that");
  }

  void pool_fits(const PoolSettings& pool, const std::string& prefix) {
    const std::string largest = prefix + (pool.auto_size() ? ".max_size" : ".size");
    at_most(prefix + ".min_idle", pool.min_idle, largest, pool.largest());
    at_most(prefix + ".warm_up.size", pool.warm_up.size, largest, pool.largest());
    if (pool.auto_size()) at_most(prefix + ".min_size", pool.min_size, prefix + ".max_size", pool.max_size);
    classes_are_usable(pool.classes, prefix + ".classes");
  }

  void classes_are_usable(const std::vector<std::string>& classes, const std::string& key) {
    if (places_.wrong(key) || classes.empty()) return;
    if (classes.size() == 1 || classes.size() > kMostClasses) {
      return error(
          key, "lists " + std::to_string(classes.size()) + ", expected none, or 2 to " + std::to_string(kMostClasses));
    }
    listed_once(classes, key, "class");
  }

  void listeners_classes_are_known() {
    const auto lists = [](const PoolSettings& pool, const std::string& name) {
      return std::find(pool.classes.begin(), pool.classes.end(), name) != pool.classes.end();
    };
    for (std::size_t i = 0; i < config_.listen.size(); ++i) {
      const std::string& name = config_.listen[i].class_name;
      const std::string key = item_key("listen", i) + ".class";
      if (name.empty() || places_.wrong(key) || lists(config_.pool, name)) continue;
      const auto its = [&](const OriginSettings& origin) { return lists(origin.pool, name); };
      if (std::any_of(config_.origins.begin(), config_.origins.end(), its)) continue;
      error(key, in_quotes(name) + " is not in any pool.classes, expected one of them");
    }
  }

  void upstream_is_complete(const Upstream& upstream, const std::string& prefix) {
    const std::string tls = prefix + ".tls.";
    identity_is_whole(upstream.tls, tls);
    protocols_are_usable(upstream.protocols, prefix + ".protocols");
    const std::string key = prefix + ".proxy_credentials";
    // An origin that is reached directly inherits the credentials.
    if (upstream.proxy.empty() && places_.given(key) && !places_.wrong(prefix + ".proxy")) {
      error(key, "is set without proxy, expected both or none");
    }
  }

  // Reported where the file sets it, so an origin that inherits it adds no warning.
  void origins_are_verified(const Upstream& upstream, const std::string& prefix) {
    const std::string key = prefix + ".tls.verify";
    if (upstream.tls.verify || !places_.given(key)) return;
    reading_.warnings.push_back(at(key,
                                   "is false, so any host that answers for the origin reads and changes what is sent, "
                                   "expected true; ca_file names an authority of your own"));
  }

  void protocols_are_usable(const std::vector<std::string>& protocols, const std::string& key) {
    if (places_.wrong(key)) return;
    if (protocols.empty()) return error(key, R"(is empty, expected "h1", "h2" or both)");
    listed_once(protocols, key, "protocol");
  }

  // Reports the second item.
  void listed_once(const std::vector<std::string>& list, const std::string& key, const char* what) {
    for (auto item = list.begin(); item != list.end(); ++item) {
      if (std::find(list.begin(), item, *item) == item) continue;
      return error(item_key(key, static_cast<std::size_t>(item - list.begin())),
                   in_quotes(*item) + " is listed twice, expected each " + what + " once");
    }
  }

  // Leniency for one old origin must not apply to all others.
  void no_leniency_for_all() {
    const std::string key = "upstream.lenient";
    if (config_.upstream.lenient.empty() || places_.wrong(key)) return;
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
    if (origin.intercept) may_be_intercepted(origin, key);
    credentials_are_sendable(origin, key);
  }

  void credentials_are_sendable(const OriginSettings& origin, const std::string& prefix) {
    if (places_.wrong(prefix + ".uri")) return;
    for (auto& [below, text] : credential_errors(origin, config_)) {
      const std::string key = std::string(prefix).append(1, '.').append(below);
      if (!places_.wrong(key)) error(key, std::move(text));
    }
  }

  // A tcp origin is the target of CONNECT (RFC 9110 §9.3.6): each connection serves one tunnel, whose content carpool
  // does not interpret.
  void tunnels_alone(const std::string& origin) {
    for (const char* useless : {"alias", "pool.max_streams", "pool.max_usage", "upstream.protocols", "upstream.lenient",
                                "upstream.tls.ca_file", "upstream.tls.cert_file", "upstream.tls.min_version",
                                "upstream.tls.verify", "upstream.tls.server_name"}) {
      const std::string key = origin + '.' + useless;
      if (places_.given(key)) error(key, "does not apply to a tcp origin, which carries only tunnels");
    }
  }

  // The client sees the authority's certificate instead of the origin's, so only carpool can verify the origin.
  void may_be_intercepted(const OriginSettings& origin, const std::string& prefix) {
    const std::string key = prefix + ".intercept";
    if (places_.wrong(prefix + ".uri") || places_.wrong("intercept.ca_dir")) return;
    if (origin.origin.scheme != pool::Scheme::https) return error(key, "is set, expected an https origin");
    if (origin.origin.is_ip_literal()) return error(key, "is set for an address, expected an origin with a name");
    if (!origin.upstream.tls.verify)
      return error(key, "is set beside upstream.tls.verify = false, expected one of both");
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

  void idle_fits_the_total() {
    std::uint64_t sum = config_.origins.empty() ? config_.pool.min_idle : 0;
    for (const OriginSettings& origin : config_.origins) sum += origin.pool.min_idle;
    const std::uint32_t most = config_.pool_total.max_connections;
    if (sum <= most) return;
    error("pool.total.max_connections", "is " + std::to_string(most) +
                                            ", less than the sum of min_idle over all origins (" + std::to_string(sum) +
                                            "), expected at least that");
  }

  void ranges_are_in_order() {
    if (config_.dns.min_ttl > config_.dns.max_ttl) {
      error(places_.given("dns.min_ttl") ? "dns.min_ttl" : "dns.max_ttl",
            "dns.min_ttl = " + in_quotes(duration_text(config_.dns.min_ttl)) + " is more than dns.max_ttl = " +
                in_quotes(duration_text(config_.dns.max_ttl)) + ", expected at most that");
    }
    at_most("threads.min", config_.threads.min, "threads.max", config_.threads.max);
  }

  void watermarks_are_in_order() {
    const Overload& marks = config_.overload;
    const auto ordered = [this](const char* low, std::uint32_t a, const char* high, std::uint32_t b) {
      if (a != 0 && b != 0) at_most(std::string("overload.") + low, a, std::string("overload.") + high, b);
    };
    ordered("stop_keep_alive", marks.stop_keep_alive, "refuse_clients", marks.refuse_clients);
    ordered("refuse_clients", marks.refuse_clients, "close_idle", marks.close_idle);
  }

  void log_has_one_target() {
    const Log& log = config_.log;
    if (!log.file.empty() && !log.syslog.empty()) error("log.syslog", "is set beside log.file, expected one of them");
    if (!log.file.empty() && log.file == log.access_file) {
      error("log.access_file", in_quotes(log.file) + " is also log.file (" + line_of("log.file") +
                                   "), expected a file of its own, or none");
    }
  }

  Reading& reading_;
  const Config& config_;
  const Places& places_;
  const std::string& file_;
};

}  // namespace

void check(Reading& reading, const Places& places, const std::string& file) {
  Checker(reading, places, file).run();
}

}  // namespace carpool::proxy::config
