#include "proxy/commands/cli/completion.h"

#include <algorithm>

#include "proxy/commands/cli/command.h"
#include "proxy/config/options.h"

namespace carpool::proxy::cli {
namespace {

std::string joined(Words words, std::string_view between) {
  std::string out;
  for (const std::string_view word : words) out.append(out.empty() ? "" : between).append(word);
  return out;
}

std::string names(std::string_view between) {
  std::string out;
  for (const Command& command : commands()) out.append(out.empty() ? "" : between).append(command.name);
  return out;
}

// Returns true if the command has flags besides those of every command that queries an instance.
bool has_own_flags(const Command& command) {
  return std::any_of(flags().begin(), flags().end(),
                     [&](const Flag& flag) { return takes(command, flag) != flag.commands.empty(); });
}

// Returns the commands whose operand is an ORIGIN. Only a running instance can list its possible values.
std::string names_with_origin(std::string_view between, std::string_view after = {}) {
  std::string out;
  for (const Command& command : commands()) {
    if (command.operand.name != "ORIGIN") continue;
    out.append(out.empty() ? "" : between).append(command.name).append(after);
  }
  return out;
}

// ---- bash ----

// A URI contains colons, at which readline splits words, so the part before the last colon is not offered again.
constexpr std::string_view kBashOrigins = R"sh(_carpool_origins() {
  local line=${COMP_LINE:0:COMP_POINT} whole cut i
  local -a words at=()
  read -ra words <<<"$line"
  whole=${line##*[[:space:]]}
  for ((i = 1; i < ${#words[@]}; i++)); do
    case ${words[i]} in
      --admin|--config|--token-file|--cacert|--client-cert|--client-key) at+=("${words[i]}" "${words[i+1]}") ;;
      --admin=*|--config=*|--token-file=*|--cacert=*|--client-cert=*|--client-key=*) at+=("${words[i]}") ;;
    esac
  done
  COMPREPLY=($(compgen -W "$("${words[0]}" origins "${at[@]}" 2>/dev/null)" -- "$whole"))
  if [[ $whole != "$1" ]]; then
    cut=${whole%"${whole##*:}"}
    COMPREPLY=("${COMPREPLY[@]#"$cut"}")
  fi
}
)sh";

std::string shared_flags() {
  std::string out;
  for (const Flag& flag : flags()) {
    if (flag.commands.empty()) out.append(flag.name).append(" ");
  }
  return out;
}

std::string all_flags() {
  std::string out = shared_flags();
  for (const config::ProgramFlag& flag : config::program_flags()) {
    if (flag.name != "--config") out.append(flag.name).append(" ");
  }
  out.pop_back();
  return out;
}

std::string flags_of(const Command& command) {
  std::string out;
  for (const Flag& flag : flags()) {
    if (takes(command, flag)) out.append(flag.name).append(" ");
  }
  return out + "--help";
}

// Returns the flags that take a value: a file, or anything else.
std::string flags_with(bool file) {
  std::string out;
  for (const Flag& flag : flags()) {
    if (flag.value.empty() || !flag.words.empty() || (flag.value == "FILE") != file) continue;
    out.append(out.empty() ? "" : "|").append(flag.name);
  }
  return out;
}

std::string bash_case(std::string_view pattern, std::string_view offered, std::string_view end = " ;;\n") {
  std::string out = "    ";
  return out.append(pattern)
      .append(") COMPREPLY=($(compgen -W '")
      .append(offered)
      .append("' -- \"$word\"))")
      .append(end);
}

std::string bash_values() {
  std::string out = "    " + flags_with(true) + ") COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n";
  for (const Flag& flag : flags()) {
    if (!flag.words.empty()) out += bash_case(flag.name, joined(flag.words, " "), "; return ;;\n");
  }
  return out + "    " + flags_with(false) + ") return ;;\n";
}

std::string bash_words() {
  std::string out = bash_case(":-*", all_flags());
  for (const Command& command : commands()) {
    if (has_own_flags(command)) out += bash_case(std::string(command.name) + ":-*", flags_of(command));
  }
  out += bash_case("*:-*", shared_flags() + "--help") + bash_case(":*", names(" "));
  for (const Command& command : commands()) {
    const Words words = command.operand.words;
    if (!words.empty()) out += bash_case(std::string(command.name) + ":*", joined(words, " "));
  }
  return out.append("    ").append(names_with_origin("|", ":*")).append(") _carpool_origins \"$word\" ;;\n");
}

std::string bash() {
  return "# bash completion for carpool, made by `carpool completion bash`.\n" + std::string(kBashOrigins) +
         "_carpool() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= i\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    case ${COMP_WORDS[i]} in\n"
         "      " +
         names("|") +
         ") command=${COMP_WORDS[i]}; break ;;\n"
         "    esac\n"
         "  done\n"
         "  COMPREPLY=()\n"
         "  case $before in\n" +
         bash_values() +
         "  esac\n"
         "  case $command:$word in\n" +
         bash_words() +
         "  esac\n"
         "}\n"
         "complete -F _carpool carpool\n";
}

// ---- zsh ----

constexpr std::string_view kZshOrigins = R"sh(_carpool_origins() {
  local -a at
  local i
  for ((i = 1; i < $#words; i++)); do
    case $words[i] in
      (--admin|--config|--token-file|--cacert|--client-cert|--client-key) at+=("${(Q)words[i]}" "${(Q)words[i+1]}") ;;
      (--admin=*|--config=*|--token-file=*|--cacert=*|--client-cert=*|--client-key=*) at+=("${(Q)words[i]}") ;;
    esac
  done
  compadd -- ${(f)"$(${(Q)words[1]} origins $at 2>/dev/null)"}
}
)sh";

std::string shell_word(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out.append(c == '\'' ? "'\\''" : std::string(1, c));
  return out + "'";
}

std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) out.append(c == ':' || c == '[' || c == ']' ? "\\" : "").append(1, c);
  return out;
}

std::string zsh_flag(std::string_view name, std::string_view value, std::string_view doc, Words words = {}) {
  // After "=" the value may be in the same word or in the next one.
  std::string text = std::string(name).append(value.empty() ? "[" : "=[").append(zsh_text(doc)).append("]");
  if (!value.empty()) text.append(":").append(value).append(value == "FILE" ? ":_files" : ":");
  if (!words.empty()) text.append("(").append(joined(words, " ")).append(")");
  return shell_word(text);
}

std::string zsh_flag(const Flag& flag) {
  return zsh_flag(flag.name, flag.value, flag.doc, flag.words);
}

// Returns the case statement for the command, which may be anywhere on the line.
std::string zsh_case() {
  return "case ${words[(r)(" + names("|") + ")]} in";
}

std::string zsh_own_flags() {
  std::string out = "  " + zsh_case() + "\n";
  for (const Command& command : commands()) {
    std::string own;
    for (const Flag& flag : flags()) {
      if (!flag.commands.empty() && takes(command, flag)) own.append("\n      ").append(zsh_flag(flag));
    }
    if (!own.empty()) out.append("    ").append(command.name).append(") own=(").append(own).append(") ;;\n");
  }
  return out + "  esac\n";
}

std::string zsh_operands() {
  std::string out = "'2:argument:{" + zsh_case();
  for (const Command& command : commands()) {
    if (command.operand.words.empty()) continue;
    out.append(" ").append(command.name).append(") compadd ").append(joined(command.operand.words, " ")).append(" ;;");
  }
  out.append(" ").append(names_with_origin("|")).append(") _carpool_origins ;;");
  return out + " esac}'\n";
}

std::string zsh() {
  std::string out = "#compdef carpool\n# zsh completion for carpool, made by `carpool completion zsh`.\n" +
                    std::string(kZshOrigins) + "_carpool() {\n  local -a commands own\n  commands=(\n";
  for (const Command& command : commands()) {
    out.append("    ").append(shell_word(std::string(command.name) + ":" + zsh_text(command.doc))).append("\n");
  }
  out += "  )\n" + zsh_own_flags() + "  _arguments $own \\\n";
  for (const config::ProgramFlag& flag : config::program_flags()) {
    out.append("    ").append(zsh_flag(flag.name, flag.value, flag.doc)).append(" \\\n");
  }
  for (const Flag& flag : flags()) {
    if (flag.commands.empty() && flag.name != "--config") out.append("    ").append(zsh_flag(flag)).append(" \\\n");
  }
  return out + "    '1:command:{_describe command commands}' \\\n    " + zsh_operands() +
         "}\n"
         // When the file is sourced, it only declares the function; as an autoloaded function, it also runs it.
         "if [ \"$funcstack[1]\" = _carpool ]; then _carpool \"$@\"; else compdef _carpool carpool; fi\n";
}

// ---- fish ----

constexpr std::string_view kFishOrigins = R"sh(function __carpool_origins
  set -l words (commandline -opc)
  set -l at
  for i in (seq (count $words))
    switch $words[$i]
      case --admin --config --token-file --cacert --client-cert --client-key
        set -a at $words[$i] $words[(math $i + 1)]
      case '--admin=*' '--config=*' '--token-file=*' '--cacert=*' '--client-cert=*' '--client-key=*'
        set -a at $words[$i]
    end
  end
  command -q $words[1]; and command $words[1] origins $at 2>/dev/null
end
)sh";

std::string fish_flag(std::string_view name, std::string_view value, std::string_view doc) {
  std::string out = " -l ";
  out.append(name.substr(2)).append(value.empty() ? "" : value == "FILE" ? " -r -F" : " -x");
  return out.append(" -d ").append(shell_word(doc)).append("\n");
}

std::string fish_flag(const Flag& flag) {
  std::string out = "complete -c carpool";
  if (!flag.commands.empty()) out.append(" -n '__fish_seen_subcommand_from ").append(flag.commands).append("'");
  if (!flag.words.empty()) out.append(" -a ").append(shell_word(joined(flag.words, " ")));
  return out + fish_flag(flag.name, flag.value, flag.doc);
}

std::string fish() {
  std::string out = "# fish completion for carpool, made by `carpool completion fish`.\n" + std::string(kFishOrigins) +
                    "complete -c carpool -f\n";
  for (const config::ProgramFlag& flag : config::program_flags()) {
    out.append("complete -c carpool").append(fish_flag(flag.name, flag.value, flag.doc));
  }
  for (const Flag& flag : flags()) {
    if (flag.name != "--config") out += fish_flag(flag);
  }
  for (const Command& command : commands()) {
    out.append("complete -c carpool -n __fish_use_subcommand -a ").append(command.name);
    out.append(" -d ").append(shell_word(command.doc)).append("\n");
  }
  for (const Command& command : commands()) {
    if (command.operand.words.empty()) continue;
    out.append("complete -c carpool -n '__fish_seen_subcommand_from ").append(command.name).append("' -a ");
    out.append(shell_word(joined(command.operand.words, " "))).append("\n");
  }
  out.append("complete -c carpool -n '__fish_seen_subcommand_from ").append(names_with_origin(" "));
  return out.append("' -a '(__carpool_origins)'\n");
}

}  // namespace

std::optional<std::string> completion(std::string_view shell) {
  if (shell == "bash") return bash();
  if (shell == "zsh") return zsh();
  if (shell == "fish") return fish();
  return std::nullopt;
}

}  // namespace carpool::proxy::cli
