#include "proxy/commands/cli/cli.h"

#include <unistd.h>

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/open_to_read.h"
#include "proxy/commands/cli/admin_client.h"
#include "proxy/commands/cli/completion.h"
#include "proxy/commands/cli/help.h"
#include "proxy/commands/cli/origin_word.h"
#include "proxy/commands/cli/pools_table.h"
#include "proxy/commands/cli/request.h"
#include "proxy/commands/cli/response.h"
#include "proxy/commands/cli/top.h"
#include "proxy/config/options.h"
#include "proxy/config/text.h"
#include "proxy/config/token_file.h"

namespace carpool::proxy::cli {
namespace {

constexpr int kDone = 0, kUsageError = 1, kNoResponse = 2, kRefused = 3;
constexpr int kMaxCommand = 600;  // seconds
constexpr const char* kNotReloaded = "not reloaded: the instance keeps its configuration\n";

// Wraps the usage text to the width of a terminal.
std::string usage(const Command& command) {
  constexpr std::size_t kWidth = 100;
  std::string text = "carpool " + std::string(command.name);
  const auto add = [&](const std::string& part) {
    const std::size_t line = text.rfind('\n') + 1;
    text.append(text.size() - line + part.size() < kWidth ? " " : "\n    ").append(part);
  };
  for (const std::string& part : usage_of(command)) add(part);
  if (command.path.empty()) return text;
  add("[--admin ADDRESS [--token-file FILE] [--cacert FILE] [--client-cert FILE [--client-key FILE]]");
  add("| --config FILE] [--json]");
  return text;
}

std::string help(const Command& command) {
  std::string text = usage(command).append("\n");
  describe(text, "", command.doc, 2);
  text += "\n";
  if (const std::string legend = legend_of(command); !legend.empty()) {
    describe(text, "", legend, 2);
    text += "\n";
  }
  const std::size_t before = text.size();
  for (const Flag& flag : flags()) {
    if (!takes(command, flag)) continue;
    describe(text, std::string(flag.name) + (flag.value.empty() ? "" : " ") + std::string(flag.value), flag.doc, 24);
  }
  if (text.size() != before) text += "\n";
  if (command.operand.name == "ORIGIN") {
    text += "ORIGIN is a URI, an alias, or any part of one origin's URI; `carpool origins` lists them.\n";
  } else if (!command.operand.words.empty()) {
    text.append(command.operand.name).append(" is one of");
    for (const std::string_view word : command.operand.words) text.append(" ").append(word);
    text += ".\n";
  }
  if (command.name == "webhook") {
    return text + "Exit codes: 0 success, 1 usage or configuration error, 2 cannot listen, 3 internal error.\n";
  }
  if (command.path.empty()) return text + "Exit codes: 0 success, 1 error, 3 output that cannot be written.\n";
  return text + "Exit codes: 0 success, 1 usage or configuration error, 2 no response, 3 refused by the instance.\n";
}

class Session {
 public:
  Session(const Request& request, std::ostream& out, std::ostream& err) : request_(request), out_(out), err_(err) {}

  int run() {
    if (const int code = find_instance(); code != kDone) return code;
    std::string origin;
    if (request_.command->operand.name == "ORIGIN") {
      if (const int code = find_origin(origin); code != kDone) return code;
    }
    if (request_.command->name == "top") return top();
    if (request_.command->name == "drain" && !json()) announce_drain(origin);
    const std::string target = target_of(request_, origin);
    if (request_.command->name == "config" && !json()) return print_config(target + ".toml");
    Json response;
    const int code = ask_for(method_of(request_), target, response);
    if (code == kDone) show(response);
    return code;
  }

 private:
  int fail(int code, const std::string& why) const {
    if (json() && code != kUsageError) {
      out_ << json_text(Json{{"error", why}}, 2) << '\n';
    } else {
      err_ << "carpool: " << why << '\n';
    }
    return code;
  }

  // The only malformed request is an invalid address.
  int no_response(const Fault& fault) const {
    return fail(fault.kind == FaultKind::malformed_request ? kUsageError : kNoResponse, clean(fault.detail));
  }

  void announce_drain(const std::string& origin) const {
    const std::string lasts = request_.value("--for");
    err_ << "carpool: drain " << origin << ": idle connections close now, borrowed ones when they are returned, and "
         << "requests wait until " << (lasts.empty() ? "`carpool resume`" : lasts + " have passed") << '\n';
  }

  int find_instance() {
    if (const int code = check_files(); code != kDone) return code;
    const std::string token_file = request_.value("--token-file");
    const std::string_view command = request_.command->name;
    if (command == "origins") instance_.timeout_seconds = 1;  // shells call it while the user types
    // A dial may take until pool.connect_timeout, and a reload reads files.
    if (command == "warm-up" || command == "reload") instance_.response_seconds = kMaxCommand;
    if (request_.has("--admin")) {
      if (const int code = set_address(request_.value("--admin")); code != kDone) return code;
      return read_token(token_file);
    }
    config::Options options;
    options.config = request_.value("--config");
    const config::Reading reading = config::load(options, config::process_env());
    // A reload of a file with errors is refused; the other commands ask the instance, which runs with an earlier file.
    if (!reading && (command == "reload" || !config::names_instance(reading))) {
      config::report(reading, err_);
      if (command == "reload") err_ << kNotReloaded;
      return kUsageError;
    }
    for (const config::ConfigError& error : reading.errors) err_ << "warning: " << error.line_text() << '\n';
    if (!reading.config.admin.enabled) return fail(kUsageError, "[admin] enabled is false in the configuration");
    instance_.address = reading.config.admin.address;
    if (const std::string file = config::find_config(options); !file.empty()) instance_.named_by = file;
    if (!reading.config.admin.cert_file.empty()) {
      instance_.trust = trust_of_flags();
      if (instance_.trust->ca_file.empty()) instance_.trust->certificate = reading.config.admin.cert_file;
    }
    return read_token(token_file.empty() ? reading.config.admin.token_file : token_file);
  }

  // A file that cannot be read is an error of the command line, before any request.
  int check_files() const {
    for (const char* const flag : {"--cacert", "--client-cert", "--client-key"}) {
      const std::string path = request_.value(flag);
      if (path.empty()) continue;
      if (const Result<Fd> file = open_to_read(path); !file) {
        return fail(kUsageError, std::string(flag) + ": " + path + ": " + file.fault().detail);
      }
    }
    return kDone;
  }

  Trust trust_of_flags() const {
    Trust trust;
    trust.ca_file = request_.value("--cacert");
    trust.cert_file = request_.value("--client-cert");
    trust.key_file = request_.value("--client-key");
    return trust;
  }

  // Accepts an address as in [admin] address, or a URL, of which only the scheme and the authority are used.
  int set_address(std::string address) {
    for (const std::string_view scheme : {"https://", "http://"}) {
      if (!address.starts_with(scheme)) continue;
      address.erase(0, scheme.size());
      if (address.ends_with('/')) address.pop_back();
      if (address.rfind(':') == std::string::npos || address.ends_with(']')) {
        return fail(kUsageError, "--admin needs a port, as in " + std::string(scheme) + "HOST:9901");
      }
      if (scheme == "https://") instance_.trust = trust_of_flags();
    }
    const bool tls = instance_.trust.has_value();
    instance_.address = std::move(address);
    for (const char* const flag : {"--cacert", "--client-cert", "--client-key"}) {
      if (!tls && request_.has(flag)) return fail(kUsageError, std::string(flag) + " needs --admin https://HOST:PORT");
    }
    return kDone;
  }

  int read_token(const std::string& path) {
    if (path.empty()) return kDone;
    Result<std::string> token = config::read_token(path, open_any_to_read(path));
    if (!token) return fail(kUsageError, token.fault().detail);
    instance_.token = std::move(*token);
    return kDone;
  }

  // Uses a URI unchanged.
  int find_origin(std::string& origin) {
    if (request_.operand.empty() && request_.command->operand.optional) return kDone;
    if (request_.operand.empty()) return fail(kUsageError, std::string(request_.command->name) + " needs an ORIGIN");
    origin = request_.operand;
    if (origin.find("://") != std::string::npos) return kDone;
    Json response;
    if (const int code = ask_for("GET", "/origins", response); code != kDone) return code;
    OriginMatch found = cli::find_origin(origin, response.value("origins", Json::array()));
    if (!found.error.empty() && !found.ambiguous && json()) {  // like a refusal by the admin endpoint
      out_ << json_text(Json{{"status", 404}, {"error", found.error}}, 2) << '\n';
      return kRefused;
    }
    if (!found.error.empty()) return fail(found.ambiguous ? kUsageError : kRefused, found.error);
    origin = std::move(found.origin);
    return kDone;
  }

  int ask_for(std::string_view method, const std::string& target, Json& response) const {
    const Result<Reply> reply = ask(instance_, method, target);
    if (!reply) return no_response(reply.fault());
    response = object_in(*reply);
    if (!succeeded(*reply)) return refused(*reply, response);
    return response.is_object() ? kDone : fail(kRefused, "the response is not a JSON object");
  }

  // carpool redirects no request.
  static bool succeeded(const Reply& reply) { return reply.status / 100 == 2; }

  // Returns null if the response is not an object.
  static Json object_in(const Reply& reply) {
    Result<Json> read = read_json<Json>(reply.body, kResponseBounds);
    return read ? std::move(*read) : Json();
  }

  // A request that the instance cannot accept in any state (400) is an error of the command line. A reload's is the
  // configuration file's, which only the instance has read.
  int refused(const Reply& reply, const Json& response) const {
    const bool usage = reply.status == 400 && request_.command->name != "reload";
    const int code = usage ? kUsageError : kRefused;
    if (json() && response.is_object()) {  // the response contains the reason, and the exit code the refusal
      out_ << json_text(response, 2) << '\n';
      return code;
    }
    std::string why = "status " + std::to_string(reply.status);
    if (!response.is_object()) return fail(kRefused, why);
    for (const char* const name : {"error", "status"}) {  // the status of a problem is a number
      if (!response.contains(name) || !response.at(name).is_string()) continue;
      why = clean(response.at(name).get<std::string>());
      break;
    }
    fail(code, why);
    for (const char* const name : {"mistakes", "reasons"}) {
      const Json list = response.value(name, Json::array());
      if (list.size() == 1 && list[0].is_string() && why.ends_with(list[0].get<std::string>())) continue;
      for (const Json& one : list) err_ << "  " << shown(one);
    }
    if (request_.command->name == "reload" && response.contains("mistakes")) err_ << kNotReloaded;
    return code;
  }

  bool json() const { return request_.has("--json"); }

  void show(const Json& response) const {
    if (json()) {
      out_ << json_text(response, 2) << '\n';
    } else {
      out_ << text_of(*request_.command, response);
    }
  }

  // Prints the response unchanged, which is TOML.
  int print_config(const std::string& target) const {
    const Result<Reply> reply = ask(instance_, "GET", target);
    if (!reply) return no_response(reply.fault());
    if (!succeeded(*reply)) return refused(*reply, object_in(*reply));
    out_ << reply->body;
    return kDone;
  }

  // Prints the table once if the output is a pipe.
  int top() const {
    Json response;
    if (const int code = ask_for("GET", "/pools", response); code != kDone) return code;
    if (json()) {
      out_ << json_text(response, 2) << '\n';
    } else if (request_.has("--once") || ::isatty(STDOUT_FILENO) == 0) {
      out_ << pools_table(busiest_first(response.value("pools", Json::array())));
    } else {
      watch(instance_, response);
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
    return kUsageError;
  }
  out << *page;
  return kDone;
}

std::string not_a_command(std::string_view word) {
  std::vector<std::string_view> known;
  for (const Command& command : commands()) known.push_back(command.name);
  std::string meant = word.ends_with(".toml") ? "did you mean `--config " + std::string(word) + "`?" : "";
  for (const config::ProgramFlag& flag : config::program_flags()) {
    if (flag.name.substr(2) == word) meant = "did you mean `" + std::string(flag.name) + "`?";
  }
  return "`" + std::string(word) + "` is not a command; " +
         (meant.empty() ? config::did_you_mean(word, known, "see carpool --help") : meant);
}

// `carpool help COMMAND` prints what `carpool COMMAND --help` does.
int print_help(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  const bool named = argc >= 3 && std::string_view(argv[1]) == "help" && argv[2][0] != '-';
  const Command* const command = named ? find_command(argv[2]) : nullptr;
  if (named && (argc > 3 || command == nullptr)) {
    err << "carpool: " << (command == nullptr ? not_a_command(argv[2]) : "help takes one command") << '\n';
    return kUsageError;
  }
  out << (command == nullptr ? program_help() : help(*command));
  return kDone;
}

}  // namespace

std::optional<int> run(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  Request request;
  request.command = command_of(argc, argv);
  const auto fail = [&](const std::string& why) {
    err << "carpool: " << why << '\n';
    return kUsageError;
  };
  if (request.command == nullptr) {
    const std::string_view word = first_word(argc, argv);
    if (word.empty() || begins_with_unknown_flag(argc, argv)) return std::nullopt;
    if (word == "help") return print_help(argc, argv, out, err);
    return fail(not_a_command(word));
  }
  if (const std::string error = parse(request, argc, argv); !error.empty()) return fail(error);
  if (request.help) {
    out << help(*request.command);
    return kDone;
  }
  const std::string& word = request.operand;
  if (request.command->name == "completion") return print_page(completion(word), "bash, zsh or fish", out, err);
  if (request.command->name == "man") return print_page(manual(word), "carpool or carpool.toml", out, err);
  for (const std::string_view own : {"ca", "credential", "webhook"}) {  // otherwise it has already run
    if (request.command->name == own) return fail("`" + std::string(own) + "` must be the first word");
  }
  try {
    return Session(request, out, err).run();
  } catch (const Json::exception&) {  // a member does not have the type that carpool sends
    return fail("the response is not from carpool"), kRefused;
  }
}

}  // namespace carpool::proxy::cli
