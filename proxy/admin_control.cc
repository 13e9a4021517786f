#include "proxy/admin_control.h"

#include <memory>
#include <string>

#include "proxy/house.h"
#include "proxy/log/levels.h"

namespace carpool::proxy {

namespace {
// The order to stop, on its way to the first worker, which alone may give it.
class QuitOrder final : public exec::Mail {
 public:
  explicit QuitOrder(House& house) : house_(house) {}
  void arrive() override LOOP_ONLY {
    const std::unique_ptr<QuitOrder> self(this);  // was released into the mail
    if (house_.drain().serving()) house_.begin_drain();
  }

 private:
  House& house_;
};

std::string known_modules() {
  std::string text;
  for (const std::string_view module : log::kModules) text.append(text.empty() ? "" : ", ").append(module);
  return text;
}
}  // namespace

admin::LogLevels HouseControl::log_levels() const {
  admin::LogLevels levels{std::string(log::name(log::level())), {}};
  for (const auto& [module, level] : log::module_levels()) levels.modules.emplace_back(module, log::name(level));
  return levels;
}

Status HouseControl::set_log_level(std::string_view module, std::string_view level) {
  const std::optional<log::Level> wanted = log::parse_level(level);
  if (!wanted) {
    return Fault{FaultKind::malformed_request, Side::client, "level must be trace, debug, info, warn, error or off"};
  }
  if (module.empty()) {
    log::set_level(*wanted);
  } else if (!log::set_level(module, *wanted)) {
    return Fault{FaultKind::malformed_request, Side::client, "no such module; known: " + known_modules()};
  }
  log::warn("admin", "log level set", {{"level", level}, {"of", module.empty() ? std::string_view("all") : module}});
  return Done{};
}

admin::ReloadReport HouseControl::reload(bool dry_run) {
  return house_.reloader().reload(dry_run);
}

bool HouseControl::quit() {
  const bool first = house_.drain().serving();
  if (first) house_.workers().front()->loop().post(*std::make_unique<QuitOrder>(house_).release());
  return first;
}

}  // namespace carpool::proxy
