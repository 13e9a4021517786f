#include "proxy/commands/ca/options.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/ascii.h"
#include "pool/origin.h"
#include "proxy/config/text.h"

namespace carpool::proxy {
namespace {

constexpr int kMaxDays = 36'500;

std::string in_ticks(std::string_view word) {
  return "`" + std::string(word) + "`";
}

// Returns true if both names lead to one folder, which may not exist yet.
bool same_folder(const std::string& a, const std::string& b) {
  std::error_code error;
  const auto path = [&error](const std::string& name) {
    const auto found = std::filesystem::weakly_canonical(std::filesystem::absolute(name, error), error);
    return error ? std::filesystem::path(name) : found;
  };
  return a == b || path(a) == path(b);
}

// Returns an error text, or an empty one, like the functions below.
std::string add_host(CaOptions& options, const std::string& word) {
  const bool bare_v6 = std::count(word.begin(), word.end(), ':') > 1 && word.front() != '[';
  const auto origin = pool::canonical_origin(pool::Scheme::https, bare_v6 ? '[' + word + ']' : word);
  if (!origin) return in_ticks(word) + " is not a host: " + origin.fault().detail;
  const bool port = !bare_v6 && word.back() != ']' && word.find(':') != std::string::npos;
  if (port) return in_ticks(word) + " has a port, expected a host alone";
  if (origin->host.find('*') != std::string::npos) return in_ticks(word) + " is a pattern, expected one host";
  if (std::find(options.hosts.begin(), options.hosts.end(), origin->host) == options.hosts.end()) {
    options.hosts.push_back(origin->host);
  }
  return {};
}

std::string set_days(CaOptions& options, std::string_view word) {
  options.days = number_in<decltype(options.days)>(word).value_or(0);
  if (options.days >= 1 && options.days <= kMaxDays) return {};
  return in_ticks(word) + " is not a number of days from 1 to " + std::to_string(kMaxDays);
}

std::string set_format(CaOptions& options, std::string_view word) {
  options.plain = word == "plain";
  return options.plain || word == "sh" ? std::string() : in_ticks(word) + " is not sh or plain";
}

std::string set_action(CaOptions& options, std::string_view word) {
  using Action = CaOptions::Action;
  if (word == "init") options.action = Action::init;
  if (word == "bundle") options.action = Action::bundle;
  if (word == "env") options.action = Action::env;
  return options.action != Action::help ? std::string() : in_ticks(word) + " is not init, bundle or env";
}

std::string set_trust(CaOptions& options, std::string_view word) {
  while (word.size() > 1 && word.ends_with('/')) word.remove_suffix(1);
  options.trust = word;
  return {};
}

std::string set_dir(CaOptions& options, std::string_view word) {
  while (word.size() > 1 && word.ends_with('/')) word.remove_suffix(1);
  if (!options.dir.empty()) return in_ticks(word) + " is an unexpected argument";
  options.dir = word;
  return {};
}

// The action that a flag is for. `--trust` is for two.
struct FlagUse {
  std::string_view flag;
  CaOptions::Action action;
  std::string_view name;
};
constexpr std::array<FlagUse, 4> kFlagUses{{{"--host", CaOptions::Action::init, "init"},
                                            {"--days", CaOptions::Action::init, "init"},
                                            {"--replace", CaOptions::Action::init, "init"},
                                            {"--format", CaOptions::Action::env, "env"}}};

template <class Flags>
std::string suggestion(std::string_view word, const Flags& flags) {
  const std::string meant = config::did_you_mean(word, flags, "");
  return meant.empty() ? meant : "; " + meant;
}

// Several hosts may follow one `--host`.
class Parser {
 public:
  explicit Parser(CaOptions& options) : options_(options) {}

  std::string parse(std::string_view word) {
    if (!word.starts_with('-') || word.size() == 1) return parse_value(word);
    if (std::string error = missing(); !error.empty()) return error;
    const std::size_t equals = std::min(word.find('='), word.size());
    flag_ = word.substr(0, equals);
    given_ = false;
    flags_.push_back(flag_);
    if (flag_ == "--replace") options_.replace = given_ = true;
    if (flag_ == "--replace" && equals == word.size()) return {};
    constexpr std::array<std::string_view, 4> kWithValue{"--host", "--days", "--format", "--trust"};
    if (std::find(kWithValue.begin(), kWithValue.end(), flag_) == kWithValue.end())
      return in_ticks(word) + " is not known" + suggestion(word.substr(0, equals), kWithValue);
    return equals == word.size() ? std::string() : parse_value(word.substr(equals + 1));
  }

  // Returns the error of the whole line, or an empty text.
  std::string end() const {
    using Action = CaOptions::Action;
    if (std::string error = missing(); !error.empty()) return error;
    if (options_.action == Action::help) return "ca needs init, bundle or env";
    if (options_.dir.empty()) return "ca needs a DIR";
    const bool init = options_.action == Action::init;
    if (init && options_.hosts.empty()) return "ca init needs --host: the hosts whose certificates the authority signs";
    for (const FlagUse& use : kFlagUses) {
      const bool given = std::find(flags_.begin(), flags_.end(), use.flag) != flags_.end();
      if (given && use.action != options_.action) return in_ticks(use.flag) + " is for " + std::string(use.name);
    }
    if (options_.trust.empty()) return {};
    if (options_.action == Action::env) return "`--trust` is for init and bundle; env takes that folder as its DIR";
    if (same_folder(options_.trust, options_.dir)) return "`--trust` needs another folder than DIR, which has the key";
    return {};
  }

 private:
  std::string missing() const { return flag_.empty() || given_ ? std::string() : flag_ + " needs a value"; }

  std::string parse_value(std::string_view word) {
    if (word.empty()) return "a value must not be empty";
    const bool first = !given_;
    given_ = true;
    if (flag_ == "--host") return add_host(options_, std::string(word));
    if (flag_ == "--days" && first) return set_days(options_, word);
    if (flag_ == "--format" && first) return set_format(options_, word);
    if (flag_ == "--trust" && first) return set_trust(options_, word);
    return options_.action == CaOptions::Action::help ? set_action(options_, word) : set_dir(options_, word);
  }

  CaOptions& options_;
  std::string flag_;                // the last flag
  std::vector<std::string> flags_;  // all
  bool given_ = true;
};

std::string parse(CaOptions& options, std::span<const char* const> words) {
  Parser parser(options);
  for (const std::string_view word : words) {
    if (std::string error = parser.parse(word); !error.empty()) return error;
  }
  return parser.end();
}

}  // namespace

std::optional<std::variant<CaOptions, std::string>> parse_ca(int argc, const char* const* argv) {
  if (argc < 2 || std::string_view(argv[1]) != "ca") return std::nullopt;
  const std::span words(argv + 2, static_cast<std::size_t>(argc - 2));
  const auto is_help = [](std::string_view word) { return word == "--help" || word == "-h"; };
  CaOptions options;
  if (std::any_of(words.begin(), words.end(), is_help)) return options;
  if (std::string error = parse(options, words); !error.empty())
    return error.ends_with('?') ? error : error + "; see carpool ca --help";
  return options;
}

}  // namespace carpool::proxy
