// The checks of listeners, of [admin] and of the other addresses at which carpool accepts connections.
#include <algorithm>
#include <map>

#include "proxy/config/check.h"
#include "proxy/config/check_rules.h"
#include "proxy/config/text.h"
#include "proxy/config/text_format.h"
#include "proxy/config/token_file.h"

namespace carpool::proxy::config {
namespace {

class ServerChecks final : private CheckRules {
 public:
  ServerChecks(Reading& reading, const Places& places, const std::string& file) : CheckRules(reading, places, file) {}

  void run() {
    addresses_differ();
    for (std::size_t i = 0; i < config_.listen.size(); ++i) listener_is_whole(i);
    listeners_classes_are_known();
    admin_has_a_token();
    server_is_complete(config_.admin, "admin.");
    if (config_.admin.enabled) note_server(config_.admin, "admin.");
    token_is_private(config_.admin, "admin.token_file");
  }

 private:
  void addresses_differ() {
    std::map<std::string, std::string> seen;  // address -> key
    const auto once = [&](const std::string& address, const std::string& key) {
      if (address.empty() || any_port(address) || places_.invalid(key)) return;
      if (unix_address(address)) reading_.sockets.push_back({address.substr(address.find('/')), at(key, {})});
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

  // An open proxy gives any client access to its network.
  void listener_is_not_open(std::size_t i) {
    const Listen& listen = config_.listen[i];
    const std::string prefix = item_key("listen", i) + '.', key = prefix + "address";
    if (unix_address(listen.address) || loopback_address(listen.address)) return;
    if (any_invalid({"egress.default", "egress.report_only"})) return;
    if (any_invalid({key, prefix + "origin", prefix + "connect", prefix + "credentials_file", prefix + "open"})) return;
    const bool fixed = !listen.origin.empty() && !listen.connect;
    const bool denied = config_.egress.default_ == EgressAction::deny;
    const bool ruled = denied && !config_.egress.report_only;
    if (listen.open || fixed || ruled || !listen.credentials_file.empty()) return;
    error(key, in_quotes(listen.address) +
                   R"( is not loopback and would be an open proxy, expected one of egress.default = "deny")" +
                   (denied ? " without report_only" : "") +
                   ", a fixed origin with connect = false, a credentials_file, or open = true");
  }

  // check_fixed_origins() (proxy/net) checks whether the egress rules permit the origin.
  void fixed_origin_is_judged(const Listen& listen, const std::string& key) {
    if (listen.origin.empty() || places_.invalid(key)) return;
    if (places_.invalid("egress.default") || places_.invalid("egress.allow") || places_.invalid("egress.deny")) return;
    FixedOrigin fixed{listen.origin, {}, at(key, {})};
    for (const OriginSettings& origin : config_.origins) {
      if (origin.origin.label() == listen.origin) fixed.addresses = origin.addresses;
    }
    reading_.fixed.push_back(std::move(fixed));
  }

  void credentials_are_private(const Listen& listen, const std::string& key) {
    if (listen.credentials_file.empty() || places_.invalid(key)) return;
    reading_.credentials.push_back({listen.credentials_file, at(key, {})});
    const std::string prefix = key.substr(0, key.rfind('.') + 1);
    if (any_invalid({prefix + "address", prefix + "cert_file"})) return;
    const bool local = unix_address(listen.address) || loopback_address(listen.address);
    if (local || !listen.cert_file.empty()) return;
    warning(key, "is set without cert_file, so passwords and tokens travel in plain text to " +
                     in_quotes(listen.address) + ", expected cert_file and key_file");
  }

  // A peer that may announce a client chooses the address that logs and origins see.
  void peers_are_trusted(const Listen& listen, const std::string& prefix) {
    if (any_invalid({prefix + "address", prefix + "trusted", prefix + "proxy_protocol"})) return;
    if (listen.proxy_protocol && listen.trusted.empty() && !unix_address(listen.address)) {
      error(prefix + "proxy_protocol", "is set without trusted, expected the load balancer's addresses there");
    }
    if (!listen.proxy_protocol && !listen.trusted.empty()) {
      error(prefix + "trusted", "is set without proxy_protocol, expected both or none");
    }
  }

  void of_a_unix_socket(const Listen& listen, const std::string& key, const std::string& value) {
    if (value.empty() || unix_address(listen.address)) return;
    if (places_.invalid(key.substr(0, key.rfind('.')) + ".address")) return;
    error(key, "is set beside the address " + in_quotes(listen.address) + R"(, expected "unix:/path")");
  }

  // `table`: a listener or [admin].
  template <class Table>
  void server_is_complete(const Table& table, const std::string& prefix) {
    identity_is_whole(table, prefix);
    needs(prefix, table.client_ca_file, "client_ca_file", table.cert_file, "cert_file");
  }

  template <class Table>
  void note_server(const Table& table, const std::string& prefix) {
    if (table.cert_file.empty() || table.key_file.empty() || places_.invalid(prefix + "client_ca_file")) return;
    note_certificates(table, table.client_ca_file, prefix, "client_ca_file").server = true;
  }

  void admin_has_a_token() {
    const Admin& admin = config_.admin;
    if (places_.invalid("admin.address") || places_.invalid("admin.token_file") || !needs_token(admin)) return;
    if (!admin.token_file.empty()) return reading_.tokens.push_back({admin.token_file, at("admin.token_file", {})});
    error("admin.address", in_quotes(admin.address) + " is not loopback, expected a token_file");
  }

  void token_is_private(const Admin& admin, const std::string& key) {
    if (!admin.enabled || admin.token_file.empty()) return;
    if (any_invalid({"admin.address", "admin.token_file", "admin.cert_file"})) return;
    if (!needs_token(admin)) {
      return warning(key, "is set beside the address " + in_quotes(admin.address) +
                              ", which needs no token, expected another address, or no token_file");
    }
    if (!admin.cert_file.empty()) return;
    warning(key, "is set without cert_file, so the token travels in plain text to " + in_quotes(admin.address) +
                     ", expected cert_file and key_file");
  }

  void listeners_classes_are_known() {
    const auto lists = [](const PoolSettings& pool, const std::string& name) {
      return std::find(pool.classes.begin(), pool.classes.end(), name) != pool.classes.end();
    };
    bool unknown = places_.invalid("pool.classes");
    for (std::size_t i = 0; i < config_.origins.size(); ++i) {
      unknown = unknown || places_.invalid(item_key("origin", i) + ".pool.classes");
    }
    for (std::size_t i = 0; i < config_.listen.size() && !unknown; ++i) {
      const std::string& name = config_.listen[i].class_name;
      const std::string key = item_key("listen", i) + ".class";
      if (name.empty() || places_.invalid(key) || lists(config_.pool, name)) continue;
      const auto its = [&](const OriginSettings& origin) { return lists(origin.pool, name); };
      if (std::any_of(config_.origins.begin(), config_.origins.end(), its)) continue;
      error(key, in_quotes(name) + " is not in any pool.classes, expected one of them");
    }
  }
};

}  // namespace

void check_servers(Reading& reading, const Places& places, const std::string& file) {
  ServerChecks(reading, places, file).run();
}

}  // namespace carpool::proxy::config
