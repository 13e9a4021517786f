#include "proxy/commands/webhook/injection.h"

#include <algorithm>
#include <utility>

namespace carpool::proxy::webhook {
namespace {

using ErrorText = std::string;  // an error text; empty: done

Fault bad_file(const std::string& what) {
  return {FaultKind::malformed_request, Side::self, "the injection file: " + what};
}

bool has_text(const Json& item, const char* member) {
  return item.is_object() && item.contains(member) && item.at(member).is_string();
}

// A list of a pod. `identity`: the member by which a review compares its items.
struct ItemList {
  const char* key;
  const char* identity;
  Json* into;
};

ErrorText parse_list(const Json& from, const ItemList& list) {
  *list.into = from.value(list.key, Json::array());
  const auto good = [&list](const Json& item) { return has_text(item, "name") && has_text(item, list.identity); };
  if (list.into->is_array() && std::all_of(list.into->begin(), list.into->end(), good)) return {};
  const bool path = std::string_view(list.identity) != "name";
  return std::string(list.key) + " is not a list of objects with a name" + (path ? " and a " : "") +
         (path ? list.identity : "");
}

ErrorText parse_parts(const Json& json, Parts& parts) {
  for (const ItemList& list : {ItemList{"initContainers", "name", &parts.init_containers},
                               {"containers", "name", &parts.containers},
                               {"volumes", "name", &parts.volumes},
                               {"env", "name", &parts.env},
                               {"volumeMounts", "mountPath", &parts.volume_mounts},
                               {"initVolumeMounts", "mountPath", &parts.init_volume_mounts}}) {
    if (ErrorText why = parse_list(json, list); !why.empty()) return why;
  }
  return {};
}

const Json* named(const Json& containers, const std::string& name) {
  const auto found = std::find_if(containers.begin(), containers.end(),
                                  [&](const Json& container) { return container.at("name") == name; });
  return found == containers.end() ? nullptr : &*found;
}

ErrorText parse_text(const Json& json, const char* key, std::string& into) {
  if (!json.contains(key) || !json.at(key).is_string()) return std::string(key) + " is not a string";
  into = json.at(key).get<std::string>();
  return {};
}

ErrorText parse_intercept_parts(const Json& json, const std::string& sidecar, InterceptParts& into) {
  if (!json.is_object()) return "is not a JSON object";
  if (ErrorText why = parse_parts(json, into.parts); !why.empty()) return why;
  if (ErrorText why = parse_text(json, "caDir", into.ca_dir); !why.empty()) return why;
  if (ErrorText why = parse_text(json, "authority", into.authority); !why.empty()) return why;
  if (!named(into.parts.init_containers, sidecar) && !named(into.parts.containers, sidecar)) {
    return "expected the container " + sidecar;
  }
  if (into.authority.empty()) return {};
  const Json* const authority = named(into.parts.init_containers, into.authority);
  const bool takes_hosts = authority != nullptr && authority->contains("args") && authority->at("args").is_array();
  return takes_hosts ? "" : "authority is not an init container with args";
}

}  // namespace

Result<Injection> parse_injection(std::string_view text) {
  const Result<Json> read = read_json<Json>(text, {});
  if (!read) return bad_file(read.fault().detail);
  const Json& json = *read;
  if (!json.is_object()) return bad_file("is not a JSON object");
  Injection made;
  const Parts& parts = made.parts;
  if (const ErrorText why = parse_parts(json, made.parts); !why.empty()) return bad_file(why);
  if (parts.init_containers.size() + parts.containers.size() != 1) return bad_file("expected one container");
  if (const ErrorText why = parse_text(json, "config", made.config); !why.empty()) return bad_file(why);
  const Json& container = parts.init_containers.empty() ? parts.containers[0] : parts.init_containers[0];
  made.name = container.at("name").get<std::string>();
  if (!json.contains("intercept")) return made;
  const ErrorText why = parse_intercept_parts(json.at("intercept"), made.name, made.intercept.emplace());
  if (!why.empty()) return bad_file("intercept: " + why);
  return made;
}

}  // namespace carpool::proxy::webhook
