#include "proxy/commands/cli/command.h"

#include <algorithm>
#include <array>

#include "proxy/telemetry/log_levels.h"

namespace carpool::proxy::cli {
namespace {

constexpr std::array<std::string_view, 3> kShells{"bash", "zsh", "fish"};
constexpr std::array<std::string_view, 3> kActions{"init", "bundle", "env"};
constexpr std::array<std::string_view, 2> kSchemes{"basic", "bearer"};
constexpr std::array<std::string_view, 2> kFormats{"sh", "plain"};
constexpr std::array<std::string_view, 2> kPages{"carpool", "carpool.toml"};

constexpr Operand kNone{};
constexpr Operand kOrigin{"ORIGIN"};
constexpr Operand kAnyOrigin{"ORIGIN", true, {}, "origin"};
constexpr Operand kLevel{"LEVEL", true, log::kLevelNames, "level", "PUT"};
constexpr Operand kShell{"SHELL", false, kShells};
constexpr Operand kAction{"ACTION", false, kActions, "", "", "DIR"};
constexpr Operand kScheme{"SCHEME", false, kSchemes, "", "", "NAME"};
constexpr Operand kPage{"PAGE", true, kPages};

constexpr std::string_view kStates =
    "paused and draining (by an operator), cooling down (the origin asked for it), failing (most requests of the last "
    "15 seconds failed, of the last minute if it had none, all ever if it had none then; or the last dial failed; with "
    "the reason), N ejected (addresses that keep failing).";
constexpr std::array<std::string_view, 3> kTopLegend{
    "RATE is the number of borrows per second. STATE is there while an origin has one:", kStates,
    "LONGEST is the wait of the request that waits longest; PEAK, the most connections at once, and BORROWS count "
    "since the pool began. A narrow terminal gets fewer columns, and states without their reason."};
constexpr std::array<std::string_view, 2> kPoolsLegend{
    "LONGEST is the wait of the request that waits longest. PEAK (the most connections at once, dials included), "
    "BORROWS and CREATED (connections established) count since the pool began: with the first request, a warm-up or "
    "the start; again after pool.total.origin_idle_timeout without use, and after a reload that changes the origin's "
    "TLS. STATE:",
    kStates};
constexpr std::array<std::string_view, 1> kExplainLegend{
    "`Counted since` says since when the pool counts, and how many dials have succeeded: the shares of causes are of "
    "all dials, and the borrows are divided by the successful ones. Limits are those of now, which earlier connections "
    "may not have had. CONNECTs and refused certificates count since carpool started."};

constexpr std::array<Command, 27> kCommands{{
    {"top", "GET", "/pools", kNone,
     "shows the pools, refreshed each second, failing origins and the busiest first; q quits", kTopLegend},
    {"pools", "GET", "/pools", kNone, "lists every pool", kPoolsLegend},
    {"origins", "GET", "/origins", kNone, "lists what ORIGIN may be: every origin, then the aliases"},
    {"pool", "GET", "/pools/{origin}", kOrigin, "shows one pool: its counters, and the addresses of its origin"},
    {"connections", "GET", "/pools/{origin}/connections", kOrigin, "lists the connections of one pool"},
    {"explain", "GET", "/pools/{origin}/explain", kOrigin,
     "explains why connections of one origin were opened and closed", kExplainLegend},
    {"advice", "GET", "/pools/{origin}/advice", kOrigin,
     "shows the measured load of one origin and the pool size that it requires"},
    {"what-if", "GET", "/pools/{origin}/what-if", kOrigin, "simulates the load of one origin with other settings"},
    {"history", "GET", "/history", kAnyOrigin,
     "shows the last 15 minutes of one origin or of all together: requests, times and connections every five seconds"},
    {"leaks", "GET", "/leaks", kNone, "lists leases that were lost or are held too long"},
    {"threads", "GET", "/threads", kNone, "lists the threads, their modes and their tasks"},
    {"overload", "GET", "/overload", kNone, "shows the use of memory and descriptors, and the load that is shed"},
    {"ready", "GET", "/readyz", kNone, "shows whether carpool accepts requests, and if not, why"},
    {"config", "GET", "/config", kNone, "prints the configuration in force, without secrets"},
    {"warm-up", "POST", "/pools/{origin}/warm-up", kOrigin,
     "opens connections of one origin before they are needed, at most as many as its pool may have"},
    {"pause", "POST", "/pools/{origin}/pause", kOrigin,
     "stops lending connections of one origin; its requests wait until resume"},
    {"resume", "POST", "/pools/{origin}/resume", kOrigin, "ends a pause or a drain"},
    {"drain", "POST", "/pools/{origin}/drain", kOrigin,
     "pauses one origin, and closes idle connections at once and borrowed ones when they are returned"},
    {"reconnect", "POST", "/pools/{origin}/reconnect", kOrigin, "replaces every connection of one origin"},
    {"log-level", "GET", "/log-level", kLevel, "shows the log levels, or sets that of all modules or of one"},
    {"reload", "POST", "/reload", kNone, "reloads the configuration and reports what changed"},
    {"quit", "POST", "/quit", kNone, "drains and exits"},
    {"webhook", "", "", kNone, "runs the Kubernetes admission webhook that adds carpool to pods"},
    {"ca", "", "", kAction,
     "creates the certificate authority of intercepted origins (init DIR --host NAME...) and exports it (bundle DIR, "
     "env DIR)"},
    {"credential", "", "", kScheme,
     "reads a password or token from standard input, and prints its line for a credentials_file (basic NAME, bearer "
     "NAME)"},
    {"completion", "", "", kShell, "prints the completion script for a shell: bash, zsh or fish"},
    {"man", "", "", kPage, "prints a manual page: carpool (1) or carpool.toml (5)"},
}};

constexpr std::array<Flag, 29> kFlags{{
    {"--admin", "ADDRESS", "", "",
     "address of the instance, or https://HOST:PORT; default: the [admin] address of the configuration"},
    {"--token-file", "FILE", "", "",
     "file with the bearer token; default: the [admin] token_file of the configuration"},
    {"--cacert", "FILE", "", "",
     "authorities in PEM that verify an instance with TLS; default: with --admin the system's, else the certificate in "
     "the [admin] cert_file"},
    {"--client-cert", "FILE", "", "", "certificate in PEM for an instance whose [admin] client_ca_file demands one"},
    {"--client-key", "FILE", "", "", "private key of --client-cert; default: in the same file"},
    {"--config", "FILE", "", "", "configuration file that names the instance"},
    {"--json", "", "", "", "print the response unchanged"},
    {"--size", "N", "warm-up what-if", "size", "number of connections", {}, 1, 100'000},
    {"--min-idle", "N", "what-if", "min_idle", "number of connections to keep idle", {}, 0, 100'000},
    {"--max-waiting", "N", "what-if", "max_waiting", "limit of waiting requests", {}, 0, 1'000'000},
    {"--max-usage", "N", "what-if", "max_usage", "requests per connection; 0: no limit", {}, 0, 1'048'575},
    {"--idle-timeout", "TIME", "what-if", "idle_timeout", "idle time after which a connection is closed, such as 30s"},
    {"--expire-time", "TIME", "what-if", "expire_time", "maximum age of a connection, such as 30m"},
    {"--wait-timeout", "TIME", "what-if", "wait_timeout", "maximum wait of a request, such as 250ms", {}, 1},
    {"--wait", "TIME", "advice", "wait", "maximum wait of 99 of 100 requests, such as 20ms", {}, 1},
    {"--for", "TIME", "pause drain", "for", "resume after this time, such as 10m; default: only by resume", {}, 1},
    {"--module", "NAME", "log-level", "module", "set only the level of this module", log::kModules},
    {"--dry-run", "", "reload", "dry_run", "only report what would change"},
    {"--once", "", "top", "", "print one frame and exit"},
    {"--listen", "ADDRESS", "webhook", "", "HTTPS address to listen on; default 0.0.0.0:8443"},
    {"--certificate", "FILE", "webhook", "", "certificate in PEM; default /etc/carpool/tls/tls.crt"},
    {"--key", "FILE", "webhook", "", "private key in PEM; default /etc/carpool/tls/tls.key"},
    {"--injection", "FILE", "webhook", "", "file with the containers to add, as the chart renders it"},
    {"--drain-delay", "TIME", "webhook", "", "time to keep accepting after SIGTERM; default 0s"},
    {"--host", "NAME...", "ca", "", "hosts whose certificates the authority signs; for init"},
    {"--days", "N", "ca", "", "lifetime of the authority in days, for init; default 365"},
    {"--replace", "", "ca", "", "init replaces the authority; applications must then trust the new one"},
    {"--trust", "DIR", "ca", "",
     "folder for applications, without the key: init and bundle write ca.pem, bundle.pem and bundle.p12 into it"},
    {"--format", "FORMAT", "ca", "", "sh: commands of a shell, the default; plain: NAME=VALUE lines; for env",
     kFormats},
}};

bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t space = std::min(list.find(' '), list.size());
    if (list.substr(0, space) == word) return true;
    list.remove_prefix(std::min(space + 1, list.size()));
  }
  return false;
}

template <class Rows>
const auto* find_in(const Rows& rows, std::string_view name) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

std::string legend_of(const Command& command) {
  std::string legend;
  for (const std::string_view sentences : command.legend) legend.append(legend.empty() ? "" : " ").append(sentences);
  return legend;
}

std::span<const Command> commands() {
  return kCommands;
}

std::span<const Flag> flags() {
  return kFlags;
}

const Command* find_command(std::string_view name) {
  return find_in(commands(), name);
}

const Flag* find_flag(std::string_view name) {
  return find_in(flags(), name);
}

bool takes(const Command& command, const Flag& flag) {
  return flag.commands.empty() ? !command.path.empty() : has_word(flag.commands, command.name);
}

std::vector<std::string> usage_of(const Command& command) {
  std::vector<std::string> parts;
  const std::string operand(command.operand.name);
  if (!operand.empty()) parts.push_back(command.operand.optional ? "[" + operand + "]" : operand);
  if (!command.operand.next.empty()) parts.emplace_back(command.operand.next);
  for (const Flag& flag : kFlags) {
    if (flag.commands.empty() || !takes(command, flag)) continue;
    std::string& part = parts.emplace_back("[");
    part.append(flag.name).append(flag.value.empty() ? "" : " ").append(flag.value).append("]");
  }
  return parts;
}

std::string doc_among_others(const Flag& flag) {
  if (flag.commands.empty()) return std::string(flag.doc);
  std::string text = "for ";
  for (const char c : flag.commands) text += c == ' ' ? std::string(" and ") : std::string(1, c);
  return text.append(": ").append(flag.doc);
}

}  // namespace carpool::proxy::cli
