#include "proxy/commands/webhook/injection.h"

#include <utility>

namespace carpool::proxy::webhook {
namespace {

Fault wrong(const std::string& what) {
  return {FaultKind::malformed_request, Side::self, "the injection file: " + what};
}

bool take_list(const Json& from, const char* key, Json& into) {
  into = from.value(key, Json::array());
  if (!into.is_array()) return false;
  for (const Json& item : into) {
    if (!item.is_object() || !item.contains("name") || !item.at("name").is_string()) return false;
  }
  return true;
}

}  // namespace

Result<Injection> parse_injection(std::string_view text) {
  const Result<Json> read = read_json<Json>(text, {});
  if (!read) return wrong(read.fault().detail);
  const Json& json = *read;
  if (!json.is_object()) return wrong("is not a JSON object");
  Injection made;
  const std::pair<const char*, Json*> lists[] = {{"initContainers", &made.init_containers},
                                                 {"containers", &made.containers},
                                                 {"volumes", &made.volumes},
                                                 {"env", &made.env},
                                                 {"volumeMounts", &made.volume_mounts}};
  for (const auto& [key, into] : lists) {
    if (!take_list(json, key, *into)) return wrong(std::string(key) + " is not a list of objects with a name");
  }
  if (made.init_containers.size() + made.containers.size() != 1) return wrong("expected one container");
  if (!json.contains("config") || !json.at("config").is_string()) return wrong("config is not a string");
  made.config = json.at("config").get<std::string>();
  const Json& container = made.init_containers.empty() ? made.containers[0] : made.init_containers[0];
  made.name = container.at("name").get<std::string>();
  return made;
}

}  // namespace carpool::proxy::webhook
