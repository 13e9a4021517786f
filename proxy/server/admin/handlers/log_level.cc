#include "proxy/server/admin/handlers/log_level.h"

#include <string>

#include "proxy/server/admin/json.h"
#include "proxy/server/admin/path.h"
#include "proxy/telemetry/log_levels.h"

namespace carpool::proxy::admin {
namespace {

Response shown(const LogLevels& levels) {
  Json modules = Json::object();
  for (const auto& [module, level] : levels.modules) modules[module] = level;
  return json_response(200, {{"level", levels.level}, {"modules", std::move(modules)}});
}

bool well_formed(const Json& body) {
  const auto text = [&](const char* name) { return body.at(name).is_string(); };
  if (!body.is_object() || !body.contains("level") || !text("level")) return false;
  return body.size() == 1 || (body.size() == 2 && body.contains("module") && text("module"));
}

bool known(const std::string& level, const std::string& module) {
  return log::parse_level(level) && (module.empty() || log::known_module(module));
}

std::string text_in(const Json& body, const char* name) {
  return body.value(name, "");
}

}  // namespace

Response log_level_response(const Call& call) {
  if (query_value(call.request.target, "level") || query_value(call.request.target, "module")) {
    return error_response(400, "GET takes no level and no module: PUT sets them");
  }
  return shown(call.control.log_levels());
}

Response set_log_level_response(const Call& call) {
  const auto asked_level = query_value(call.request.target, "level");
  const auto asked_module = query_value(call.request.target, "module");
  if ((asked_level && asked_level->empty()) || (asked_module && asked_module->empty())) {
    return error_response(400, "level and module must not be empty");
  }
  std::string level = asked_level.value_or("");
  std::string module = asked_module.value_or("");
  if (!call.request.body.empty()) {
    const Result<Json> read = read_json<Json>(call.request.body, {2, 16});
    if (!read || !well_formed(*read)) {
      return error_response(400, R"(the body must be {"level": "debug", "module": "tls"})");
    }
    const Json& body = *read;
    if (!known(text_in(body, "level"), text_in(body, "module")))
      return error_response(400, "the body's level or module is not known; /openapi.json lists them");
    if (level.empty()) level = text_in(body, "level");
    if (module.empty()) module = text_in(body, "module");
  }
  if (level.empty()) return error_response(400, "level is missing: ?level=debug, or a JSON body");
  if (Status set = call.control.set_log_level(module, level); !set) return error_response(400, set.fault().detail);
  return shown(call.control.log_levels());
}

}  // namespace carpool::proxy::admin
