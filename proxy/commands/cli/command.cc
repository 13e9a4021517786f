#include "proxy/commands/cli/command.h"

#include <algorithm>
#include <array>

#include "proxy/telemetry/log_levels.h"

namespace carpool::proxy::cli {
namespace {

constexpr std::array<std::string_view, 3> kShells{"bash", "zsh", "fish"};
constexpr std::array<std::string_view, 2> kPages{"carpool", "carpool.toml"};

constexpr Operand kNone{};
constexpr Operand kOrigin{"ORIGIN", false, {}, ""};
constexpr Operand kLevel{"LEVEL", true, log::kLevelNames, "level"};
constexpr Operand kShell{"SHELL", false, kShells, ""};
constexpr Operand kPage{"PAGE", true, kPages, ""};

constexpr std::array<Command, 23> kCommands{{
    {"top", "GET", "/pools", kNone, "every pool each second, those with most to do first; q quits"},
    {"pools", "GET", "/pools", kNone, "every pool"},
    {"pool", "GET", "/pools/{origin}", kOrigin, "one pool: its counts, and the addresses behind its name"},
    {"connections", "GET", "/pools/{origin}/connections", kOrigin, "every connection of one pool"},
    {"explain", "GET", "/pools/{origin}/explain", kOrigin, "why its connections were opened and closed"},
    {"advice", "GET", "/pools/{origin}/advice", kOrigin, "its measured load, and the size that asks for"},
    {"what-if", "GET", "/pools/{origin}/what-if", kOrigin, "its load replayed on other settings"},
    {"leaks", "GET", "/leaks", kNone, "leases that were lost or are held for too long"},
    {"threads", "GET", "/threads", kNone, "threads, their modes and their tasks"},
    {"overload", "GET", "/overload", kNone, "memory and descriptors in use, and what is shed for it"},
    {"ready", "GET", "/readyz", kNone, "whether it takes requests, and if not, why"},
    {"config", "GET", "/config", kNone, "the configuration in force, without secrets"},
    {"warm-up", "POST", "/pools/{origin}/warm-up", kOrigin, "opens connections before they are needed"},
    {"pause", "POST", "/pools/{origin}/pause", kOrigin, "lends nothing more; requests wait"},
    {"resume", "POST", "/pools/{origin}/resume", kOrigin, "ends a pause"},
    {"drain", "POST", "/pools/{origin}/drain", kOrigin, "closes what is idle now, the rest when it comes back"},
    {"reconnect", "POST", "/pools/{origin}/reconnect", kOrigin, "replaces every connection"},
    {"log-level", "GET", "/log-level", kLevel, "shows the log's levels, or sets all of them, or one module's"},
    {"reload", "POST", "/reload", kNone, "reads the configuration again; says what changed"},
    {"quit", "POST", "/quit", kNone, "drains and exits"},
    {"webhook", "", "", kNone, "serves as Kubernetes' admission webhook that adds carpool to pods"},
    {"completion", "", "", kShell, "prints the completion for a shell: bash, zsh or fish"},
    {"man", "", "", kPage, "prints a manual page: carpool (1) or carpool.toml (5)"},
}};

constexpr std::array<Flag, 18> kFlags{{
    {"--admin", "ADDRESS", "", "", "the instance to ask; else the [admin] address of the configuration"},
    {"--token-file", "FILE", "", "", "its bearer token; else the [admin] token_file of the configuration"},
    {"--config", "FILE", "", "", "the configuration that names it"},
    {"--json", "", "", "", "the answer as it came"},
    {"--size", "N", "warm-up what-if", "size", "so many connections"},
    {"--min-idle", "N", "what-if", "min_idle", "so many kept idle"},
    {"--max-waiting", "N", "what-if", "max_waiting", "so many requests may wait"},
    {"--max-usage", "N", "what-if", "max_usage", "so many requests on one connection; 0: any number"},
    {"--idle-timeout", "TIME", "what-if", "idle_timeout", "a connection rests so long, as 30s"},
    {"--expire-time", "TIME", "what-if", "expire_time", "a connection lives so long, as 30m"},
    {"--wait-timeout", "TIME", "what-if", "wait_timeout", "a request waits so long, as 250ms"},
    {"--module", "NAME", "log-level", "module", "sets this one's alone", log::kModules},
    {"--dry-run", "", "reload", "dry_run", "only say what would change"},
    {"--once", "", "top", "", "one look"},
    {"--listen", "ADDRESS", "webhook", "", "where it serves HTTPS; default 0.0.0.0:8443"},
    {"--certificate", "FILE", "webhook", "", "PEM; default /etc/carpool/tls/tls.crt"},
    {"--key", "FILE", "webhook", "", "PEM; default /etc/carpool/tls/tls.key"},
    {"--injection", "FILE", "webhook", "", "what is added to a pod, as the chart writes it"},
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
