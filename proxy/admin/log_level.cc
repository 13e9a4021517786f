#include "proxy/admin/log_level.h"

#include "proxy/admin/json.h"
#include "proxy/admin/path.h"

namespace carpool::proxy::admin {
namespace {

Answer shown(const LogLevels& levels) {
  Json modules = Json::object();
  for (const auto& [module, level] : levels.modules) modules[module] = level;
  return json_answer(200, {{"level", levels.level}, {"modules", std::move(modules)}});
}

// Of a body that is an object of texts; empty where it is not.
std::string text_in(const Json& body, const char* name) {
  const auto found = body.find(name);
  return found != body.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

Answer log_level_answer(const Call& call) {
  return shown(call.control.log_levels());
}

Answer set_log_level_answer(const Call& call) {
  std::string level = query_value(call.request.target, "level").value_or("");
  std::string module = query_value(call.request.target, "module").value_or("");
  if (level.empty() && !call.request.body.empty()) {
    const Json body = Json::parse(call.request.body, nullptr, false);
    if (!body.is_object()) return error_answer(400, R"(the body must be {"level": "debug", "module": "tls"})");
    level = text_in(body, "level");
    if (module.empty()) module = text_in(body, "module");
  }
  if (level.empty()) return error_answer(400, "level is missing: ?level=debug, or a JSON body");
  if (Status set = call.control.set_log_level(module, level); !set) return error_answer(400, set.fault().detail);
  return shown(call.control.log_levels());
}

}  // namespace carpool::proxy::admin
