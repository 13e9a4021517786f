#include "proxy/http/redact.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"

namespace carpool::proxy::http {
namespace {

// A parameter is secret if its name, in lower case, contains one of kParts, ends with one of kEnds or equals one of
// kWhole.
constexpr std::array<std::string_view, 18> kParts{
    "token", "secret",  "passw",      "passphrase", "pwd",     "signature", "apikey",     "api_key",    "api-key",
    "auth",  "session", "credential", "jwt",        "private", "accesskey", "access_key", "access-key", "assertion"};
constexpr std::array<std::string_view, 3> kEnds{"key", "keyid", "key_id"};
constexpr std::array<std::string_view, 10> kWhole{"sig",  "code", "otp", "pin",  "pw",
                                                  "pass", "sid",  "sas", "hmac", "mac"};
constexpr std::size_t kMaxName = kMaxTarget;  // the log shows no more of a target
constexpr std::string_view kHidden = "***";

// Returns the name as its recipient interprets it: percent-decoded and in lower case.
std::string_view plain_name(std::string_view name, std::array<char, kMaxName>& text) {
  std::size_t size = 0;
  for (std::size_t i = 0; i < name.size() && size < text.size(); ++i) {
    char c = name[i];
    if (c == '%' && i + 2 < name.size() && hex_value(name[i + 1]) >= 0 && hex_value(name[i + 2]) >= 0) {
      c = static_cast<char>(hex_value(name[i + 1]) * 16 + hex_value(name[i + 2]));
      i += 2;
    }
    text[size++] = ascii_lower(c);
  }
  return {text.data(), size};
}

bool secret_name(std::string_view written) {
  if (written.size() > kMaxName) return true;
  std::array<char, kMaxName> text;
  const std::string_view name = plain_name(written, text);
  const auto holds = [name](std::string_view part) { return name.find(part) != std::string_view::npos; };
  const auto ends = [name](std::string_view end) { return name.ends_with(end); };
  return std::any_of(kParts.begin(), kParts.end(), holds) || std::any_of(kEnds.begin(), kEnds.end(), ends) ||
         std::find(kWhole.begin(), kWhole.end(), name) != kWhole.end();
}

// Returns the length of "scheme://" if userinfo follows, or 0 without userinfo. Sets `end` to the position after the
// "@".
std::size_t userinfo_start(std::string_view target, std::size_t& end) {
  const std::size_t slashes = target.find("://");
  if (slashes == std::string_view::npos || target.front() == '/') return 0;
  const std::size_t start = slashes + 3;
  const std::size_t stop = std::min(target.find_first_of("/?#", start), target.size());
  const std::size_t at = target.substr(start, stop - start).rfind('@');
  if (at == std::string_view::npos) return 0;
  end = start + at + 1;
  return start;
}

void append_query(std::string& out, std::string_view query) {
  while (!query.empty()) {
    const std::size_t stop = std::min(query.find_first_of("&;"), query.size());
    const std::string_view pair = query.substr(0, stop);
    const std::size_t equals = pair.find('=');
    if (equals != std::string_view::npos && secret_name(pair.substr(0, equals))) {
      out.append(pair.substr(0, equals + 1)).append(kHidden);
    } else {
      out.append(pair);
    }
    if (stop == query.size()) return;
    out += query[stop];
    query.remove_prefix(stop + 1);
  }
}

}  // namespace

std::string_view redacted(std::string_view target, std::string& scratch, std::size_t most) {
  const bool cut = target.size() > most;
  // Truncates after the redaction, because half of a parameter name could hide a secret.
  std::size_t userinfo_end = 0;
  const std::size_t userinfo = target.empty() ? 0 : userinfo_start(target, userinfo_end);
  const std::size_t question = target.find('?');
  if (!cut && userinfo == 0 && question == std::string_view::npos) return target;
  scratch.clear();
  if (userinfo != 0) scratch.append(target.substr(0, userinfo)).append(kHidden).append("@");
  const std::size_t path = userinfo != 0 ? userinfo_end : 0;
  const std::size_t path_end = std::min(question, target.size());
  scratch.append(target.substr(path, path_end - path));
  if (question != std::string_view::npos && scratch.size() < most) {
    scratch += '?';
    append_query(scratch, target.substr(question + 1));
  }
  if (scratch.size() > most) scratch.replace(most, std::string::npos, "...");
  return scratch;
}

bool is_redacted(std::string_view target) {
  const std::string mark = std::string("=").append(kHidden);
  std::size_t at = target.find('?');
  while ((at = target.find(mark, at)) != std::string_view::npos) {
    const std::size_t name = target.find_last_of("?&;", at) + 1;
    const bool secret = secret_name(target.substr(name, at - name));
    at += mark.size();
    if (secret && (at == target.size() || target[at] == '&' || target[at] == ';')) return true;
  }
  return false;
}

}  // namespace carpool::proxy::http
