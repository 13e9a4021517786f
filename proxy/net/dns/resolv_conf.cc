#include "proxy/net/dns/resolv_conf.h"

#include <algorithm>

#include "base/ascii.h"

namespace carpool::proxy::dns {
namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view next_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
  const auto word = line.substr(0, line.find_first_of(kBlank));
  line.remove_prefix(word.size());
  return word;
}

// Parses "timeout:3" into `value`, within the bounds of glibc.
void read_option(std::string_view word, std::string_view key, int most, int& value) {
  if (!word.starts_with(key)) return;
  word.remove_prefix(key.size());
  if (const auto number = number_in<int>(word)) value = std::clamp(*number, 1, most);
}

}  // namespace

ResolvOptions parse_resolv_options(std::string_view text) {
  ResolvOptions options;
  while (!text.empty()) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (next_word(line) != "options") continue;
    for (auto word = next_word(line); !word.empty(); word = next_word(line)) {
      read_option(word, "timeout:", 30, options.timeout_s);
      read_option(word, "attempts:", 5, options.attempts);
    }
  }
  return options;
}

}  // namespace carpool::proxy::dns
