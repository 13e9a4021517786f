#include "proxy/cli/cli.h"

#include <unistd.h>

#include <fstream>
#include <ostream>
#include <string>
#include <vector>

#include "proxy/cli/ask.h"
#include "proxy/cli/command.h"
#include "proxy/cli/pages.h"
#include "proxy/cli/table.h"
#include "proxy/cli/top.h"
#include "proxy/config/options.h"
#include "proxy/config/text.h"

namespace carpool::proxy::cli {
namespace {

constexpr int kDone = 0, kWrongUse = 1, kNoAnswer = 2, kRefused = 3;

struct Request {
  const Command* command = nullptr;
  std::string admin, token_file, config, size;
  std::vector<std::string> arguments;
  bool json = false, dry_run = false, once = false, help = false;
};

// The value of `--name VALUE` or `--name=VALUE`; null: it is another flag.
const char* const* value_of(std::string_view name, const char* const* at, const char* const* end, std::string& into) {
  const std::string_view word = *at;
  if (word.starts_with(name) && word.substr(name.size()).starts_with('=')) {
    into = word.substr(name.size() + 1);
    return at;
  }
  if (word != name) return nullptr;
  if (at + 1 != end) into = *++at;
  return at;
}

std::string parse(Request& request, const char* const* at, const char* const* end) {
  bool named = false;  // the command itself has been met
  for (; at != end; ++at) {
    const std::string_view word = *at;
    const char* const* taken = value_of("--admin", at, end, request.admin);
    if (taken == nullptr) taken = value_of("--token-file", at, end, request.token_file);
    if (taken == nullptr) taken = value_of("--config", at, end, request.config);
    if (taken == nullptr) taken = value_of("--size", at, end, request.size);
    if (taken != nullptr) {
      at = taken;
    } else if (word == "--json") {
      request.json = true;
    } else if (word == "--dry-run") {
      request.dry_run = true;
    } else if (word == "--once") {
      request.once = true;
    } else if (word == "--help" || word == "-h") {
      request.help = true;
    } else if (word.starts_with('-')) {
      return "`" + std::string(word) + "` is not known; see carpool " + std::string(request.command->name) + " --help";
    } else if (named || word != request.command->name) {
      request.arguments.emplace_back(word);
    } else {
      named = true;
    }
  }
  return {};
}

std::string help(const Command& command) {
  std::string text = "carpool " + std::string(command.name);
  if (command.argument == Argument::origin) text += " ORIGIN";
  if (!command.option.empty()) text.append(" [").append(command.option).append("]");
  if (!command.path.empty()) text += " [--admin ADDRESS [--token-file FILE] | --config FILE] [--json]";
  text.append("\n  ").append(command.doc).append("\n\n");
  for (const Flag& flag : flags()) {
    std::string left = "  " + std::string(flag.name) + (flag.value.empty() ? "" : " ") + std::string(flag.value);
    text.append(left).append(left.size() < 20 ? 20 - left.size() : 1, ' ').append(flag.doc).append("\n");
  }
  text +=
      "\nORIGIN is an URI as `carpool pools` shows it, or a part of one that only one pool has.\n"
      "Exit codes: 0 done, 1 wrong use or configuration, 2 no answer, 3 the instance refused.\n";
  return text;
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
    if (plain) {
      out += c;
    } else {
      out.append(1, '%').append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
    }
  }
  return out;
}

class Session {
 public:
  Session(const Request& request, std::ostream& out, std::ostream& err) : request_(request), out_(out), err_(err) {}

  int run() {
    if (const int code = find_instance(); code != kDone) return code;
    std::string target(request_.command->path);
    if (request_.command->argument == Argument::origin) {
      std::string origin;
      if (const int code = find_origin(origin); code != kDone) return code;
      target.replace(target.find("{origin}"), 8, percent_encoded(origin));
    }
    if (!request_.size.empty()) target += "?size=" + percent_encoded(request_.size);
    if (request_.dry_run) target += "?dry_run=1";
    if (request_.command->name == "top") return top();
    Json answer;
    const int code = ask_for(request_.command->method, target, answer);
    if (code == kDone) show(answer);
    return code;
  }

 private:
  int fail(int code, const std::string& why) const {
    err_ << "carpool: " << why << '\n';
    return code;
  }

  int find_instance() {
    if (!request_.admin.empty()) {
      instance_.address = request_.admin;
      return read_token(request_.token_file);
    }
    config::Options options;
    options.config = request_.config;
    const config::Reading reading = config::load(options, config::process_env());
    if (!reading) {
      config::report(reading, err_);
      return kWrongUse;
    }
    if (!reading.config.admin.enabled) return fail(kWrongUse, "the configuration has no admin endpoint");
    instance_.address = reading.config.admin.address;
    return read_token(request_.token_file.empty() ? reading.config.admin.token_file : request_.token_file);
  }

  int read_token(const std::string& path) {
    if (path.empty()) return kDone;
    std::ifstream file(path);
    if (std::getline(file, instance_.token) && !instance_.token.empty()) return kDone;
    return fail(kWrongUse, path + ": no token in its first line");
  }

  // An URI stands for itself; anything else must be part of exactly one pool's.
  int find_origin(std::string& origin) {
    if (request_.arguments.empty()) return fail(kWrongUse, std::string(request_.command->name) + " needs an ORIGIN");
    origin = request_.arguments.front();
    if (origin.find("://") != std::string::npos) return kDone;
    Json pools;
    if (const int code = ask_for("GET", "/pools", pools); code != kDone) return code;
    std::vector<std::string> found;
    for (const Json& pool : pools.value("pools", Json::array())) {
      const std::string label = pool.value("origin", "");
      if (label.find(origin) != std::string::npos) found.push_back(label);
    }
    if (found.size() == 1) return origin = found.front(), kDone;
    if (found.empty()) return fail(kRefused, "no pool's URI contains " + config::quoted(origin));
    std::string all;
    for (const std::string& one : found) all += "\n  " + one;
    return fail(kWrongUse,
                config::quoted(origin) + " is part of " + std::to_string(found.size()) + " pools' URIs:" + all);
  }

  int ask_for(std::string_view method, const std::string& target, Json& answer) const {
    const Result<Reply> reply = ask(instance_, method, target);
    if (!reply) return fail(kNoAnswer, reply.fault().detail);
    answer = Json::parse(reply->body, nullptr, false);
    if (reply->status < 400 && !answer.is_discarded()) return kDone;
    if (request_.json && !answer.is_discarded()) out_ << answer.dump(2) << '\n';
    const bool said = answer.is_object() && answer.contains("error") && answer.at("error").is_string();
    fail(kRefused, said ? answer.at("error").get<std::string>() : "status " + std::to_string(reply->status));
    if (answer.is_object()) {
      for (const Json& mistake : answer.value("mistakes", Json::array())) err_ << "  " << shown(mistake);
    }
    return kRefused;
  }

  void show(const Json& answer) const {
    if (request_.json) {
      out_ << answer.dump(2) << '\n';
    } else if (request_.command->name == "pools") {
      out_ << pools_table(answer.value("pools", Json::array()));
    } else if (request_.command->name == "connections") {
      out_ << connections_table(answer.value("connections", Json::array()));
    } else {
      out_ << shown(answer);
    }
  }

  // Whoever reads from a pipe gets one look.
  int top() const {
    Json answer;
    if (const int code = ask_for("GET", "/pools", answer); code != kDone) return code;
    if (request_.json) {
      out_ << answer.dump(2) << '\n';
    } else if (request_.once || ::isatty(STDOUT_FILENO) == 0) {
      out_ << pools_table(busiest_first(answer.value("pools", Json::array())));
    } else {
      watch(instance_, answer);
    }
    return kDone;
  }

  const Request& request_;
  std::ostream& out_;
  std::ostream& err_;
  Instance instance_;
};

int print_page(const std::optional<std::string>& page, const char* which, std::ostream& out, std::ostream& err) {
  if (!page) {
    err << "carpool: expected " << which << '\n';
    return kWrongUse;
  }
  out << *page;
  return kDone;
}

// The first word that is no flag and no flag's value.
const Command* command_of(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--admin" || word == "--token-file" || word == "--config" || word == "--size") {
      ++i;
    } else if (!word.starts_with('-')) {
      return find_command(word);
    }
  }
  return nullptr;
}

}  // namespace

std::optional<int> run(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  Request request;
  request.command = command_of(argc, argv);
  if (request.command == nullptr) return std::nullopt;
  if (const std::string wrong = parse(request, argv + 1, argv + argc); !wrong.empty()) {
    err << "carpool: " << wrong << '\n';
    return kWrongUse;
  }
  if (request.help) {
    out << help(*request.command);
    return kDone;
  }
  const std::string first = request.arguments.empty() ? std::string() : request.arguments.front();
  if (request.command->name == "completion") return print_page(completion(first), "bash, zsh or fish", out, err);
  if (request.command->name == "man") return print_page(manual(first), "carpool or carpool.toml", out, err);
  const std::size_t most = request.command->argument == Argument::origin ? 1 : 0;
  if (request.arguments.size() > most) {
    err << "carpool: `" << request.arguments.back() << "` is one argument too many\n";
    return kWrongUse;
  }
  return Session(request, out, err).run();
}

}  // namespace carpool::proxy::cli
