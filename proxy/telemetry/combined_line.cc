#include "proxy/telemetry/combined_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <ctime>

#include "base/ascii.h"

namespace carpool::proxy::log {
namespace {

constexpr std::size_t kMaxField = 512;
constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

bool plain(char c) {
  return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
}

// Escapes as nginx does: quotes, backslashes and all bytes except printable ASCII become \xHH.
void append_safe(std::string& out, std::string_view value) {
  for (const char c : value) {
    if (plain(c)) {
      out += c;
      continue;
    }
    append_hex(out += "\\x", c, kUpperHex);
  }
}

void append_or_dash(std::string& out, std::string_view value) {
  value.empty() ? static_cast<void>(out += '-') : append_safe(out, value);
}

// Returns the address without its port, and an IPv6 address without its brackets. The field contains no space: a client
// on a Unix socket is `unix:`, and carpool itself, whose requests name their purpose behind a space, is `carpool`.
std::string_view host_of(std::string_view client) {
  client = client.substr(0, client.find(' '));
  if (client.starts_with("unix")) return client;
  const std::size_t colon = client.rfind(':');
  if (colon == std::string_view::npos) return client;
  const std::string_view host = client.substr(0, colon);
  return host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
}

// Appends a time such as "[25/Nov/2026:03:12:31 +0000]".
void append_clf_time(std::string& out, WallTime time) {
  const auto second =
      static_cast<std::time_t>(std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count());
  std::tm parts{};
  gmtime_r(&second, &parts);
  std::array<char, 48> text;
  const int size = std::snprintf(text.data(), text.size(), "[%02d/%.3s/%04d:%02d:%02d:%02d +0000]", parts.tm_mday,
                                 kMonths[static_cast<std::size_t>(parts.tm_mon)].data(), parts.tm_year + 1900,
                                 parts.tm_hour, parts.tm_min, parts.tm_sec);
  out.append(text.data(), std::min(static_cast<std::size_t>(size), text.size() - 1));
}

void append_digits(std::string& out, std::uint64_t value) {
  std::array<char, 24> digits;
  out.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
}

}  // namespace

void append_combined(std::string& out, const AccessEntry& entry, WallTime time, std::string_view target,
                     std::string_view referer) {
  append_or_dash(out, host_of(entry.client));
  out += " - ";
  append_or_dash(out, entry.user);
  out += ' ';
  append_clf_time(out, time);
  out += " \"";
  if (entry.method.empty()) {
    out += '-';  // no head was read
  } else {
    append_safe(out, entry.method);
    out += ' ';
    append_or_dash(out, target);
    out += ' ';
    append_safe(out, entry.protocol);
  }
  out += "\" ";
  append_digits(out, entry.status);
  out += ' ';
  append_digits(out, entry.bytes_out);
  out += " \"";
  append_or_dash(out, referer);
  out += "\" \"";
  append_or_dash(out, entry.user_agent.substr(0, kMaxField));
  out += "\"\n";
}

}  // namespace carpool::proxy::log
