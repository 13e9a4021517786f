#include "proxy/commands/webhook/options.h"

#include <array>
#include <string_view>
#include <utility>

#include "proxy/config/text.h"

namespace carpool::proxy {

std::optional<std::variant<WebhookOptions, std::string>> parse_webhook(int argc, const char* const* argv) {
  if (argc < 2 || std::string_view(argv[1]) != "webhook") return std::nullopt;
  WebhookOptions options;
  std::string drain_delay = "0s";
  const std::array<std::pair<std::string_view, std::string*>, 5> known{{{"--listen", &options.listen},
                                                                        {"--certificate", &options.certificate},
                                                                        {"--key", &options.key},
                                                                        {"--injection", &options.injection},
                                                                        {"--drain-delay", &drain_delay}}};
  for (int i = 2; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--help" || word == "-h") return std::nullopt;
    const std::string_view name = word.substr(0, word.find('='));
    std::string* into = nullptr;
    for (const auto& [flag, place] : known) {
      if (flag == name) into = place;
    }
    if (into == nullptr) {
      const std::array<std::string_view, 6> flags{known[0].first, known[1].first, known[2].first,
                                                  known[3].first, known[4].first, "--help"};
      return "`" + std::string(name) + "` is not known; " +
             config::did_you_mean(name, flags, "see carpool webhook --help");
    }
    if (name.size() < word.size()) {
      *into = word.substr(name.size() + 1);
    } else if (i + 1 < argc) {
      *into = argv[++i];
    } else {
      return std::string(name) + " needs a value";
    }
  }
  const std::optional<Duration> delay = config::parse_duration(drain_delay);
  if (!delay) return "--drain-delay needs a duration such as 5s, not `" + config::visible(drain_delay) + '`';
  options.drain_delay = *delay;
  return options;
}

}  // namespace carpool::proxy
