#include "proxy/commands/credential/credential.h"

#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ostream>
#include <span>
#include <string_view>
#include <system_error>

#include "base/ascii.h"
#include "base/repeat_interrupted.h"
#include "proxy/commands/cli/cli.h"
#include "proxy/config/exit_code.h"
#include "proxy/http/proxy_authorization.h"
#include "proxy/net/tls/digest.h"

namespace carpool::proxy {
namespace {

// Maximum size of a secret that fits in the field, with a name of any permitted length.
constexpr std::size_t kMaxSecret = http::kMaxProxyAuthorization / 4 * 3 - config::kMaxCredentialName - 16;
constexpr std::size_t kShort = 16;

// EchoOff: turns off the echo of the terminal until it is destroyed.
class EchoOff {
 public:
  EchoOff(int terminal, std::ostream& err) : terminal_(terminal), err_(err) {
    if (::tcgetattr(terminal_, &before_) != 0) return;
    termios silent = before_;
    silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    silenced_ = ::tcsetattr(terminal_, TCSAFLUSH, &silent) == 0;
    err_ << "secret: " << std::flush;
  }
  EchoOff(const EchoOff&) = delete;
  EchoOff& operator=(const EchoOff&) = delete;
  ~EchoOff() {
    if (!silenced_) return;
    ::tcsetattr(terminal_, TCSAFLUSH, &before_);
    err_ << '\n';
  }

 private:
  const int terminal_;
  std::ostream& err_;
  termios before_{};
  bool silenced_ = false;
};

// Reads to the end of the input, or of a terminal's line. Returns an error text, or an empty one.
std::string read_secret(int input, std::string& secret) {
  const bool terminal = ::isatty(input) == 1;
  std::array<char, 1024> piece;
  while (secret.size() <= kMaxSecret + 2 && !(terminal && secret.ends_with('\n'))) {
    const ssize_t bytes_read = repeat_interrupted([&] { return ::read(input, piece.data(), piece.size()); });
    if (bytes_read < 0) return "the secret cannot be read: " + std::generic_category().message(errno);
    if (bytes_read == 0) break;
    secret.append(piece.data(), static_cast<std::size_t>(bytes_read));
  }
  if (secret.ends_with('\n')) secret.pop_back();
  if (secret.ends_with('\r')) secret.pop_back();
  return {};
}

// Returns an error text if no client could send the secret.
std::string check_secret(config::CredentialScheme scheme, std::string_view secret) {
  const auto control = [](unsigned char c) { return c < ' ' || c == 0x7F; };
  if (secret.empty()) return "standard input has no secret";
  if (secret.size() > kMaxSecret) return "the secret is longer than " + std::to_string(kMaxSecret) + " bytes";
  if (std::any_of(secret.begin(), secret.end(), control))
    return "the secret has a control character, expected one line";
  if (scheme == config::CredentialScheme::bearer && !http::token68(secret)) {
    return "the token has characters other than letters, digits and -._~+/, with = at the end (RFC 6750)";
  }
  return {};
}

std::string hex(const tls::Sha256& digest) {
  std::string text;
  for (const unsigned char byte : digest) append_hex(text, static_cast<char>(byte));
  return text;
}

std::string parse(CredentialOptions& options, std::span<const char* const> words) {
  if (words.empty()) return "credential needs basic or bearer";
  const std::string_view scheme = words[0];
  if (scheme != "basic" && scheme != "bearer") return "`" + std::string(scheme) + "` is not basic or bearer";
  options.scheme = scheme == "basic" ? config::CredentialScheme::basic : config::CredentialScheme::bearer;
  if (words.size() < 2) return "credential needs a NAME";
  options.name = words[1];
  if (!config::credential_name_fits(options.name)) {
    return "`" + options.name +
           "` is not a name, expected up to 128 printable ASCII characters without a space or a colon";
  }
  return words.size() == 2 ? std::string()
                           : "`" + std::string(words[2]) + "` is unexpected: the secret comes from standard input";
}

int credential_help(std::ostream& out, std::ostream& err) {
  constexpr std::array<const char*, 3> kWords{"carpool", "credential", "--help"};
  return cli::run(static_cast<int>(kWords.size()), kWords.data(), out, err).value_or(1);
}

}  // namespace

std::optional<std::variant<CredentialOptions, std::string>> parse_credential(int argc, const char* const* argv) {
  if (argc < 2 || std::string_view(argv[1]) != "credential") return std::nullopt;
  const std::span words(argv + 2, static_cast<std::size_t>(argc - 2));
  const auto is_help = [](std::string_view word) { return word == "--help" || word == "-h"; };
  CredentialOptions options;
  options.help = std::any_of(words.begin(), words.end(), is_help);
  if (options.help) return options;
  if (std::string error = parse(options, words); !error.empty()) return error + "; see carpool credential --help";
  return options;
}

int run_credential(const CredentialOptions& options, int input, std::ostream& out, std::ostream& err) {
  if (options.help) return credential_help(out, err);
  std::string secret;
  std::string error;
  {
    const EchoOff echo_off(input, err);
    error = read_secret(input, secret);
  }
  if (error.empty()) error = check_secret(options.scheme, secret);
  if (!error.empty()) {
    err << "carpool: " << error << '\n';
    return kExitConfiguration;
  }
  if (secret.size() < kShort) {
    err << "warning: the secret is shorter than " << kShort
        << " bytes: a reader of the file can guess it by trial; `openssl rand -hex 32` makes one that cannot be "
           "guessed\n";
  }
  const bool basic = options.scheme == config::CredentialScheme::basic;
  out << (basic ? "basic " : "bearer ") << options.name << ' ' << hex(tls::sha256(secret)) << '\n';
  return kExitClean;
}

}  // namespace carpool::proxy
