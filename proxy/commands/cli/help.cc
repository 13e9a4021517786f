#include "proxy/commands/cli/help.h"

#include <algorithm>

#include "proxy/commands/cli/command.h"
#include "proxy/config/options.h"
#include "proxy/config/schema.h"

namespace carpool::proxy::cli {
namespace {

constexpr std::string_view kUsage = R"(carpool: a forward proxy that shares connections to origins

usage: carpool [--config FILE] [FLAG]
       carpool COMMAND [ORIGIN] [--admin ADDRESS | --config FILE] [--json]

Without a flag or a command, carpool runs. The flags:
)";
constexpr std::string_view kUsageEnd = R"(
Exit codes: 0 success, 1 configuration or usage error, 2 cannot listen, 3 internal error.
Signals: TERM and INT drain and exit, a second one exits at once; HUP reloads; USR1 reopens logs.
The line `carpool ready` on stderr names the addresses on which carpool listens.

Try: carpool --print-default-config > carpool.toml; carpool --check; carpool
     http_proxy=http://127.0.0.1:3128 curl http://example.com/
)";

// Escapes and formats `text` for man(7).
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '"') {
      out += "\\(dq";  // a macro removes quotes around its arguments
    } else {
      out += c;
    }
  }
  return !out.empty() && (out.front() == '.' || out.front() == '\'') ? "\\&" + out : out;
}

void entry(std::string& out, std::string_view name, std::string_view value, std::string_view doc) {
  out.append(".TP\n.B ").append(roff(name));
  if (!value.empty()) out.append(" \\fI").append(roff(value)).append("\\fR");
  out.append("\n").append(roff(doc)).append("\n");
}

std::string manual_of_program() {
  std::string out =
      ".TH CARPOOL 1\n.SH NAME\ncarpool \\- a forward proxy that shares connections to origins\n.SH SYNOPSIS\n"
      ".B carpool\n[\\fB\\-\\-config\\fR \\fIFILE\\fR] [\\fIFLAG\\fR]\n.br\n.B carpool\n\\fICOMMAND\\fR "
      "[\\fIORIGIN\\fR] "
      "[\\fB\\-\\-admin\\fR \\fIADDRESS\\fR | \\fB\\-\\-config\\fR \\fIFILE\\fR] [\\fB\\-\\-json\\fR]\n.SH "
      "DESCRIPTION\n"
      "Without a flag or a command, carpool runs as a proxy: applications send it their requests, and it pools the "
      "connections to the origins.\n.SH FLAGS\n";
  for (const config::ProgramFlag& flag : config::program_flags()) entry(out, flag.name, flag.value, flag.doc);
  out += ".SH COMMANDS\nAll but the last five use the admin address of a running instance.\n";
  for (const Command& command : commands()) {
    std::string value;
    for (const std::string& part : usage_of(command)) value.append(value.empty() ? "" : " ").append(part);
    entry(out, command.name, value, command.doc);
    if (const std::string legend = legend_of(command); !legend.empty())
      out.append(".br\n").append(roff(legend)).append("\n");
  }
  out += ".SH FLAGS OF COMMANDS\n";
  for (const Flag& flag : flags()) entry(out, flag.name, flag.value, doc_among_others(flag));
  out +=
      ".SH EXIT STATUS\nThe program, and its webhook: 0 success, 1 configuration or usage error, 2 cannot listen, 3 "
      "internal error.\n"
      "A command: 0 success, 1 usage or configuration error, 2 no response, 3 refused by the instance.\n.SH SIGNALS\n"
      "TERM and INT drain and exit, a second one exits at once; HUP reloads the configuration; USR1 reopens the log.\n"
      ".SH SEE ALSO\n.BR carpool.toml (5)\n";
  return out;
}

std::string manual_of_settings() {
  std::string out =
      ".TH CARPOOL.TOML 5\n.SH NAME\ncarpool.toml \\- configuration of carpool(1)\n.SH DESCRIPTION\n"
      "Durations are written \"250ms\", \"30s\", \"10m\", \"1h\", sizes \"16KiB\". In strings ${ENV}, "
      "${ENV:\\-default} and ${ENV:?message} are expanded; the last is an error with this message if ENV is unset or "
      "empty. An unknown key is an error; carpool \\-\\-check finds every error. Settings "
      "that need a restart say so; all others apply on reload.\n";
  for (const config::Section& section : config::sections()) {
    const std::string path(section.path.empty() ? "top level" : config::full_path(section));
    out.append(".SH ").append(roff(section.repeated ? "[[" + path + "]]" : "[" + path + "]")).append("\n");
    out.append(roff(section.doc)).append(".\n");
    for (const config::Setting& setting : section.settings) {
      const config::Value value = config::default_of(section, setting);
      std::string doc(setting.doc);
      if (!setting.words.empty()) doc.append(": ").append(config::bounds_text(setting, value));
      if (!setting.live) doc.append(" (needs a restart)");
      entry(out, setting.key, config::empty(value) ? "" : "= " + config::toml(value), doc);
    }
  }
  return out + ".SH SEE ALSO\n.BR carpool (1)\n";
}

}  // namespace

void describe(std::string& out, std::string_view name, std::string_view doc, std::size_t column) {
  constexpr std::size_t kWidth = 100;
  const std::size_t before = out.size();
  out.append("  ").append(name);
  std::size_t at = out.size() - before;
  while (!doc.empty()) {
    out.append(at < column ? column - at : std::size_t{name.empty() ? 0U : 1U}, ' ');
    std::size_t end = std::min(doc.size(), kWidth - column);
    if (end < doc.size() && doc[end] != ' ') end = doc.rfind(' ', end);
    out.append(doc.substr(0, end)).append(1, '\n');
    doc.remove_prefix(std::min(end + 1, doc.size()));
    at = 0;
  }
}

std::string program_help() {
  std::string out(kUsage);
  for (const config::ProgramFlag& flag : config::program_flags()) {
    describe(out, std::string(flag.name) + (flag.value.empty() ? "" : " ") + std::string(flag.value), flag.doc, 27);
  }
  out += "\nCommands query or control a running instance, except the last five (see carpool COMMAND --help):\n";
  for (const Command& command : commands()) describe(out, command.name, command.doc, 15);
  return out.append(kUsageEnd);
}

std::optional<std::string> manual(std::string_view page) {
  if (page == "carpool" || page.empty()) return manual_of_program();
  if (page == "carpool.toml") return manual_of_settings();
  return std::nullopt;
}

}  // namespace carpool::proxy::cli
