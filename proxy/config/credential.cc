#include "proxy/config/credential.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/contents.h"

namespace carpool::proxy::config {
namespace {

constexpr std::string_view kBlank = " \t\r";
constexpr std::string_view kLine = "expected `basic NAME SHA256` or `bearer NAME SHA256`";

std::string_view next_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlank));
  line.remove_prefix(word.size());
  return word;
}

std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
  return std::nullopt;
}

bool read_digest(std::string_view word, SecretDigest& digest) {
  if (word.size() != 2 * digest.size()) return false;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const std::optional<unsigned> high = hex_digit(word[2 * i]), low = hex_digit(word[2 * i + 1]);
    if (!high || !low) return false;
    digest[i] = static_cast<std::uint8_t>(*high * 16 + *low);
  }
  return true;
}

// Returns an error text, or an empty one. The text does not contain the line, which may hold a secret by mistake.
std::string read_line(std::string_view line, Credential& credential) {
  const std::string_view scheme = next_word(line), name = next_word(line), digest = next_word(line);
  if (scheme != "basic" && scheme != "bearer") return "unknown scheme, " + std::string(kLine);
  credential.scheme = scheme == "basic" ? CredentialScheme::basic : CredentialScheme::bearer;
  if (!credential_name_fits(name)) {
    return "the name is not usable, expected up to 128 printable ASCII characters without a space or a colon";
  }
  credential.name = name;
  if (!read_digest(digest, credential.digest)) {
    return "no SHA-256 after the name, expected 64 hexadecimal digits as `carpool credential` prints them";
  }
  return next_word(line).empty() ? std::string() : "more than three words, " + std::string(kLine);
}

class ListReader {
 public:
  explicit ListReader(const std::string& path) : path_(path) {}

  CredentialList read(std::string_view text) {
    for (unsigned number = 1; !text.empty(); ++number) {
      if (number > kMaxCredentialLines) {
        error(number, "more lines than carpool reads, expected at most " + std::to_string(kMaxCredentialLines));
        break;
      }
      const std::size_t end = std::min(text.find('\n'), text.size());
      add_line(number, text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (list_.credentials.empty() && list_.errors.empty()) {
      list_.errors.push_back(path_ + ": lists no credentials, expected at least one");
    }
    return std::move(list_);
  }

 private:
  void add_line(unsigned number, std::string_view line) {
    const std::size_t begin = line.find_first_not_of(kBlank);
    if (begin == std::string_view::npos || line[begin] == '#') return;
    Credential credential;
    if (std::string message = read_line(line, credential); !message.empty()) return error(number, message);
    const auto [first, added] =
        seen_.emplace(std::tuple(credential.scheme, credential.name, credential.digest), number);
    if (!added) {
      return error(number, "repeats line " + std::to_string(first->second) + ", expected each credential once");
    }
    list_.credentials.push_back(std::move(credential));
  }

  void error(unsigned number, const std::string& text) {
    list_.errors.push_back(path_ + ':' + std::to_string(number) + ": " + text);
  }

  const std::string& path_;
  CredentialList list_;
  std::map<std::tuple<CredentialScheme, std::string, SecretDigest>, unsigned> seen_;  // line of each
};

}  // namespace

bool credential_name_fits(std::string_view name) {
  const auto fits = [](char c) { return c > ' ' && c < 0x7F && c != ':'; };
  return !name.empty() && name.size() <= kMaxCredentialName && std::all_of(name.begin(), name.end(), fits);
}

CredentialList parse_credentials(std::string_view text, const std::string& path) {
  return ListReader(path).read(text);
}

CredentialList read_credentials(const std::string& path) {
  const Result<std::string> text = contents(path, kMaxCredentialBytes);
  if (text && text->size() <= kMaxCredentialBytes) return parse_credentials(*text, path);
  CredentialList list;
  const std::string why =
      text ? "it is longer than " + std::to_string(kMaxCredentialBytes) + " bytes" : text.fault().detail;
  list.errors.push_back(path + ": cannot be read: " + why + ", expected a list of credentials");
  return list;
}

}  // namespace carpool::proxy::config
