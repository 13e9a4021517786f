#include "proxy/cli/command.h"

#include <algorithm>
#include <array>

namespace carpool::proxy::cli {
namespace {

using enum Argument;

constexpr std::array<Command, 18> kCommands{{
    {"top", "GET", "/pools", none, "", "every pool each second, those with most to do first; q quits"},
    {"pools", "GET", "/pools", none, "", "every pool"},
    {"connections", "GET", "/pools/{origin}/connections", origin, "", "every connection of one pool"},
    {"explain", "GET", "/pools/{origin}/explain", origin, "", "why its connections were opened and closed"},
    {"advice", "GET", "/pools/{origin}/advice", origin, "", "its measured load, and the size that asks for"},
    {"what-if", "GET", "/pools/{origin}/what-if", origin, "--size N", "its load replayed on another size"},
    {"leaks", "GET", "/leaks", none, "", "leases that were lost or are held for too long"},
    {"threads", "GET", "/threads", none, "", "threads, their modes and their tasks"},
    {"warm-up", "POST", "/pools/{origin}/warm-up", origin, "--size N", "opens connections before they are needed"},
    {"pause", "POST", "/pools/{origin}/pause", origin, "", "lends nothing more; requests wait"},
    {"resume", "POST", "/pools/{origin}/resume", origin, "", "ends a pause"},
    {"drain", "POST", "/pools/{origin}/drain", origin, "", "closes what is idle now, the rest when it comes back"},
    {"reconnect", "POST", "/pools/{origin}/reconnect", origin, "", "replaces every connection"},
    {"reload", "POST", "/reload", none, "--dry-run", "reads the configuration again; says what changed"},
    {"quit", "POST", "/quit", none, "", "drains and exits"},
    {"webhook", "", "", none, "", "serves as Kubernetes' admission webhook that adds carpool to pods"},
    {"completion", "", "", none, "", "prints the completion for a shell: bash, zsh or fish"},
    {"man", "", "", none, "", "prints a manual page: carpool (1) or carpool.toml (5)"},
}};

constexpr std::array<Flag, 11> kFlags{{
    {"--admin", "ADDRESS", "the instance to ask; else the [admin] address of the configuration"},
    {"--token-file", "FILE", "its bearer token; else the [admin] token_file of the configuration"},
    {"--config", "FILE", "the configuration that names it"},
    {"--json", "", "the answer as it came"},
    {"--size", "N", "for warm-up and what-if: so many connections"},
    {"--dry-run", "", "for reload: only say what would change"},
    {"--once", "", "for top: one look"},
    {"--listen", "ADDRESS", "for webhook: where it serves HTTPS; default 0.0.0.0:8443"},
    {"--certificate", "FILE", "for webhook: PEM; default /etc/carpool/tls/tls.crt"},
    {"--key", "FILE", "for webhook: PEM; default /etc/carpool/tls/tls.key"},
    {"--injection", "FILE", "for webhook: what is added to a pod, as the chart writes it"},
}};

}  // namespace

std::span<const Command> commands() {
  return kCommands;
}

std::span<const Flag> flags() {
  return kFlags;
}

const Command* find_command(std::string_view name) {
  const auto* found =
      std::find_if(kCommands.begin(), kCommands.end(), [&](const Command& c) { return c.name == name; });
  return found == kCommands.end() ? nullptr : found;
}

}  // namespace carpool::proxy::cli
