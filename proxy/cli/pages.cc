#include "proxy/cli/pages.h"

#include "proxy/cli/command.h"
#include "proxy/config/options.h"
#include "proxy/config/schema.h"

namespace carpool::proxy::cli {
namespace {

std::string words(std::string_view between) {
  std::string out;
  for (const Command& command : commands()) out.append(out.empty() ? "" : between).append(command.name);
  return out;
}

std::string command_flags(std::string_view between) {
  std::string out;
  for (const Flag& flag : flags()) out.append(out.empty() ? "" : between).append(flag.name);
  return out;
}

std::string all_flags(std::string_view between) {
  std::string out = command_flags(between);
  for (const config::ProgramFlag& flag : config::program_flags()) {
    if (flag.name != "--config") out.append(between).append(flag.name);
  }
  return out;
}

// The flags that take a value: of files, or of anything else.
std::string flags_with(bool file) {
  std::string out;
  for (const Flag& flag : flags()) {
    if (!flag.value.empty() && (flag.value == "FILE") == file) out.append(out.empty() ? "" : "|").append(flag.name);
  }
  return out;
}

std::string bash() {
  return "# bash completion for carpool, made by `carpool completion bash`.\n"
         "_carpool() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= i\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    case ${COMP_WORDS[i]} in\n"
         "      " +
         words("|") +
         ") command=${COMP_WORDS[i]}; break ;;\n"
         "    esac\n"
         "  done\n"
         "  COMPREPLY=()\n"
         "  case $before in\n"
         "    " +
         flags_with(true) +
         ") COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n"
         "    " +
         flags_with(false) +
         ") return ;;\n"
         "  esac\n"
         "  case $command:$word in\n"
         "    :-*) COMPREPLY=($(compgen -W '" +
         all_flags(" ") +
         "' -- \"$word\")) ;;\n"
         "    *:-*) COMPREPLY=($(compgen -W '" +
         command_flags(" ") +
         "' -- \"$word\")) ;;\n"
         "    :*) COMPREPLY=($(compgen -W '" +
         words(" ") +
         "' -- \"$word\")) ;;\n"
         "    completion:*) COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$word\")) ;;\n"
         "    man:*) COMPREPLY=($(compgen -W 'carpool carpool.toml' -- \"$word\")) ;;\n"
         "  esac\n"
         "}\n"
         "complete -F _carpool carpool\n";
}

std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out.append(c == '\'' ? "'\\''" : std::string(1, c));
  return out + "'";
}

std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) out.append(c == ':' || c == '[' || c == ']' ? "\\" : "").append(1, c);
  return out;
}

void zsh_flag(std::string& out, std::string_view name, std::string_view value, std::string_view doc) {
  std::string text = std::string(name) + "[" + zsh_text(doc) + "]";
  if (!value.empty()) text.append(":").append(value).append(value == "FILE" ? ":_files" : ":");
  out.append("    ").append(quoted(text)).append(" \\\n");
}

std::string zsh() {
  std::string out =
      "#compdef carpool\n# zsh completion for carpool, made by `carpool completion zsh`.\n_carpool() {\n"
      "  local -a commands\n  commands=(\n";
  for (const Command& command : commands()) {
    out.append("    ").append(quoted(std::string(command.name) + ":" + zsh_text(command.doc))).append("\n");
  }
  out += "  )\n  _arguments \\\n";
  for (const config::ProgramFlag& flag : config::program_flags()) zsh_flag(out, flag.name, flag.value, flag.doc);
  for (const Flag& flag : flags()) {
    if (flag.name != "--config") zsh_flag(out, flag.name, flag.value, flag.doc);
  }
  return out +
         "    '1:command:{_describe command commands}' \\\n"
         "    '2:argument:{case ${words[(r)(completion|man)]} in completion) compadd bash zsh fish ;; "
         "man) compadd carpool carpool.toml ;; esac}'\n"
         "}\n"
         // Sourced it is only declared; as an autoloaded function its file is what is run.
         "if [ \"$funcstack[1]\" = _carpool ]; then _carpool \"$@\"; else compdef _carpool carpool; fi\n";
}

void fish_flag(std::string& out, std::string_view name, std::string_view value, std::string_view doc) {
  out.append("complete -c carpool -l ").append(name.substr(2));
  out.append(value.empty() ? "" : value == "FILE" ? " -r -F" : " -x");
  out.append(" -d ").append(quoted(doc)).append("\n");
}

std::string fish() {
  std::string out = "# fish completion for carpool, made by `carpool completion fish`.\ncomplete -c carpool -f\n";
  for (const config::ProgramFlag& flag : config::program_flags()) fish_flag(out, flag.name, flag.value, flag.doc);
  for (const Flag& flag : flags()) {
    if (flag.name != "--config") fish_flag(out, flag.name, flag.value, flag.doc);
  }
  for (const Command& command : commands()) {
    out.append("complete -c carpool -n __fish_use_subcommand -a ").append(command.name);
    out.append(" -d ").append(quoted(command.doc)).append("\n");
  }
  return out +
         "complete -c carpool -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'\n"
         "complete -c carpool -n '__fish_seen_subcommand_from man' -a 'carpool carpool.toml'\n";
}

// ---- manual pages, in man(7)'s words ----

std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
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
      "[\\fB\\-\\-admin\\fR \\fIADDRESS\\fR] [\\fB\\-\\-json\\fR]\n.SH DESCRIPTION\n"
      "Without a flag or a command it runs: applications on the same machine send it their requests, and it keeps the "
      "connections to their origins.\n.SH FLAGS\n";
  for (const config::ProgramFlag& flag : config::program_flags()) entry(out, flag.name, flag.value, flag.doc);
  out += ".SH COMMANDS\nThey speak to a running instance over its admin address, but for the last three.\n";
  for (const Command& command : commands()) {
    std::string value(command.argument == Argument::origin ? "ORIGIN" : "");
    if (!command.option.empty()) value.append(value.empty() ? "" : " ").append("[").append(command.option).append("]");
    entry(out, command.name, value, command.doc);
  }
  out += ".SH FLAGS OF COMMANDS\n";
  for (const Flag& flag : flags()) entry(out, flag.name, flag.value, flag.doc);
  out +=
      ".SH EXIT STATUS\nThe program: 0 clean, 1 configuration or command line, 2 could not listen, 3 internal.\n"
      "A command: 0 done, 1 wrong use or configuration, 2 no answer, 3 the instance refused.\n.SH SIGNALS\n"
      "TERM and INT drain and exit, a second one exits at once; HUP reloads the configuration; USR1 reopens the log.\n"
      ".SH SEE ALSO\n.BR carpool.toml (5)\n";
  return out;
}

std::string manual_of_settings() {
  std::string out =
      ".TH CARPOOL.TOML 5\n.SH NAME\ncarpool.toml \\- configuration of carpool(1)\n.SH DESCRIPTION\n"
      "Durations are written \"250ms\", \"30s\", \"10m\", \"1h\", sizes \"16KiB\". In strings ${ENV} and "
      "${ENV:\\-default} are filled in. An unknown key is an error; carpool \\-\\-check finds every mistake. What "
      "takes a "
      "restart says so; everything else follows a reload.\n";
  for (const config::Section& section : config::sections()) {
    const std::string path(section.path.empty() ? "top level" : section.path);
    out.append(".SH ").append(roff(section.repeated ? "[[" + path + "]]" : "[" + path + "]")).append("\n");
    out.append(roff(section.doc)).append(".\n");
    for (const config::Setting& setting : section.settings) {
      const config::Value value = config::default_of(section, setting);
      std::string doc(setting.doc);
      if (!setting.words.empty()) doc.append(": ").append(config::bounds_text(setting, value));
      if (!setting.live) doc.append(" (takes a restart)");
      entry(out, setting.key, config::empty(value) ? "" : "= " + config::toml(value), doc);
    }
  }
  return out + ".SH SEE ALSO\n.BR carpool (1)\n";
}

}  // namespace

std::optional<std::string> completion(std::string_view shell) {
  if (shell == "bash") return bash();
  if (shell == "zsh") return zsh();
  if (shell == "fish") return fish();
  return std::nullopt;
}

std::optional<std::string> manual(std::string_view page) {
  if (page == "carpool" || page.empty()) return manual_of_program();
  if (page == "carpool.toml") return manual_of_settings();
  return std::nullopt;
}

}  // namespace carpool::proxy::cli
