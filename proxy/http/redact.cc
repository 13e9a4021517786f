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

// The place of the userinfo, with its "@"; empty without one.
struct Userinfo {
  std::size_t begin = 0, end = 0;
};

// Returns the length of "scheme:" with the slashes behind it; 0 without a scheme.
std::size_t scheme_size(std::string_view target) {
  const std::size_t slash = target.find_first_of("/?#");
  const bool scheme = slash != std::string_view::npos && slash != 0 && target[slash - 1] == ':';
  return scheme ? std::min(target.find_first_not_of('/', slash), target.size()) : 0;
}

// Returns true if the authority is not host:port. Then a password with a slash may be cut there.
bool has_no_port(std::string_view authority) {
  const std::size_t colon = authority.rfind(':');
  return colon != std::string_view::npos && !authority.ends_with(']') &&
         authority.find_first_not_of("0123456789", colon + 1) != std::string_view::npos;
}

// A target that is no path begins with an authority, behind a scheme or, as that of CONNECT, without one.
Userinfo userinfo_in(std::string_view target) {
  if (target.starts_with('/')) return {};
  const std::size_t begin = scheme_size(target);
  std::string_view where = target.substr(begin, target.find_first_of("/?#", begin) - begin);
  if (where.find('@') == std::string_view::npos && has_no_port(where)) where = target.substr(begin);
  const std::size_t at = where.rfind('@');
  return at == std::string_view::npos ? Userinfo{} : Userinfo{begin, begin + at + 1};
}

void append_parameter(std::string& out, std::string_view pair) {
  const std::size_t equals = pair.find('=');
  if (equals != std::string_view::npos && secret_name(pair.substr(0, equals))) {
    out.append(pair.substr(0, equals + 1)).append(kHidden);
  } else {
    out.append(pair);
  }
}

void append_query(std::string& out, std::string_view query) {
  while (!query.empty()) {
    const std::size_t stop = std::min(query.find_first_of("&;"), query.size());
    append_parameter(out, query.substr(0, stop));
    if (stop == query.size()) return;
    out += query[stop];
    query.remove_prefix(stop + 1);
  }
}

// A segment may have parameters, as in "/cart;jsessionid=1".
void append_path(std::string& out, std::string_view path) {
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t stop = std::min(path.find_first_of("/;", begin), path.size());
    const std::string_view piece = path.substr(begin, stop - begin);
    begin != 0 && path[begin - 1] == ';' ? append_parameter(out, piece) : static_cast<void>(out.append(piece));
    if (stop < path.size()) out += path[stop];
    begin = stop + 1;
  }
}

}  // namespace

std::string_view redacted(std::string_view target, std::string& scratch, std::size_t most) {
  const bool cut = target.size() > most;
  // Truncates after the redaction, because half of a parameter name could hide a secret.
  const Userinfo userinfo = userinfo_in(target);
  const std::size_t question = target.find('?', userinfo.end);
  const std::string_view path = target.substr(userinfo.end, std::min(question, target.size()) - userinfo.end);
  const bool parameters = question != std::string_view::npos || path.find(';') != std::string_view::npos;
  if (!cut && userinfo.end == 0 && !parameters) return target;
  scratch.clear();
  if (userinfo.end != 0) scratch.append(target.substr(0, userinfo.begin)).append(kHidden).append("@");
  append_path(scratch, path);
  if (question != std::string_view::npos && scratch.size() < most) {
    scratch += '?';
    append_query(scratch, target.substr(question + 1));
  }
  if (scratch.size() > most) scratch.replace(most, std::string::npos, "...");
  return scratch;
}

bool is_redacted(std::string_view target) {
  const std::string mark = std::string("=").append(kHidden);
  const std::size_t question = target.find('?');
  for (std::size_t at = 0; (at = target.find(mark, at)) != std::string_view::npos; at += mark.size()) {
    const std::string_view ends = at > question ? "?&;" : "/;?";
    const std::size_t before = target.find_last_of(ends, at), behind = at + mark.size();
    if (before == std::string_view::npos || target[before] == '/') continue;  // not a parameter
    const bool secret = secret_name(target.substr(before + 1, at - before - 1));
    if (secret && (behind == target.size() || ends.find(target[behind]) != std::string_view::npos)) return true;
  }
  return false;
}

}  // namespace carpool::proxy::http
