#include "proxy/commands/webhook/patch.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace carpool::proxy::webhook {
namespace {

// Escapes `~` and `/` in a key of a JSON Pointer (RFC 6901 §3).
std::string escaped(std::string_view key) {
  std::string out;
  for (const char c : key) out.append(c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c));
  return out;
}

void add(Json& patch, const std::string& path, const Json& value) {
  patch.push_back({{"op", "add"}, {"path", path}, {"value", value}});
}

const Json* list_of(const Json& owner, const char* key) {
  const auto found = owner.find(key);
  return found != owner.end() && found->is_array() ? &*found : nullptr;
}

const Json* item_with(const Json* list, const char* key, const Json& value) {
  if (list == nullptr) return nullptr;
  const auto found = std::find_if(list->begin(), list->end(), [&](const Json& item) {
    return item.is_object() && item.contains(key) && item.at(key) == value;
  });
  return found == list->end() ? nullptr : &*found;
}

bool has(const Json* list, const char* key, const Json& value) {
  return item_with(list, key, value) != nullptr;
}

// The names of proxy variables have two spellings. Programs differ in the one that they prefer, so a value in the other
// spelling would replace the container's own.
std::string spelling(const std::string& name) {
  std::string upper = name;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper.ends_with("_PROXY") ? upper : name;
}

bool sets_variable(const Json* env, const Json& name) {
  const std::string wanted = spelling(name.get<std::string>());
  return env != nullptr && std::any_of(env->begin(), env->end(), [&](const Json& item) {
           return item.is_object() && item.contains("name") && item.at("name").is_string() &&
                  spelling(item.at("name").get<std::string>()) == wanted;
         });
}

// Returns true if the pod's own volume can stand for carpool's: the application's containers mount it too, and it is of
// the same kind.
bool stands_for(const Json& own, const Json& volume, const Parts& parts) {
  if (own == volume) return true;
  if (!has(&parts.volume_mounts, "name", volume.at("name"))) return false;
  return std::all_of(volume.items().begin(), volume.items().end(),
                     [&](const auto& member) { return own.contains(member.key()); });
}

enum class At : unsigned char { front, back };

// Adds the items that the list lacks, compared by `key`, in their order. Creates the list if it does not exist.
void add_missing(Json& patch, const Json& owner, const std::string& path, const char* list_name, const char* key,
                 const Json& items, At at) {
  const Json* const there = list_of(owner, list_name);
  const std::string list = path + "/" + list_name;
  const bool variables = std::string_view(list_name) == "env";
  bool exists = there != nullptr;
  std::size_t next = 0;
  for (const Json& item : items) {
    if (variables ? sets_variable(there, item.at(key)) : has(there, key, item.at(key))) continue;
    if (exists) {
      add(patch, list + "/" + (at == At::front ? std::to_string(next) : "-"), item);
    } else {
      add(patch, list, Json::array({item}));
    }
    exists = true;
    ++next;
  }
}

void annotate(Json& patch, const Json& pod, const std::string& config, const std::string& version) {
  const auto metadata = pod.find("metadata");
  if (metadata == pod.end()) add(patch, "/metadata", Json::object());
  if (metadata == pod.end() || !metadata->contains("annotations") || !metadata->at("annotations").is_object()) {
    add(patch, "/metadata/annotations", Json::object());
  }
  if (metadata == pod.end() || !metadata->contains("labels") || !metadata->at("labels").is_object()) {
    add(patch, "/metadata/labels", Json::object());
  }
  add(patch, "/metadata/labels/" + escaped(kLabel), "true");
  add(patch, "/metadata/annotations/" + escaped(kEffective), config);
  add(patch, "/metadata/annotations/" + escaped(kInjected), version);
}

}  // namespace

bool has_sidecar(const Json& pod, const std::string& name) {
  const Json& spec = pod.at("spec");
  return has(list_of(spec, "initContainers"), "name", name) || has(list_of(spec, "containers"), "name", name);
}

std::string conflict_of(const Json& pod, const Parts& parts) {
  const Json& spec = pod.at("spec");
  for (const Json* const list : {&parts.init_containers, &parts.containers}) {
    for (const Json& container : *list) {
      const std::string name = container.at("name").get<std::string>();
      if (has_sidecar(pod, name)) return "the pod has another container named `" + name + "`";
    }
  }
  for (const Json& volume : parts.volumes) {
    const Json* const own = item_with(list_of(spec, "volumes"), "name", volume.at("name"));
    if (own != nullptr && !stands_for(*own, volume, parts)) {
      return "the pod has another volume named `" + volume.at("name").get<std::string>() + "`";
    }
  }
  return {};
}

Json patch_of(const Json& pod, const Parts& parts, const std::string& config, const std::string& version) {
  Json patch = Json::array();
  annotate(patch, pod, config, version);
  const Json& spec = pod.at("spec");
  const Json& applications = spec.at("containers");
  for (std::size_t i = 0; i < applications.size(); ++i) {
    const std::string path = "/spec/containers/" + std::to_string(i);
    add_missing(patch, applications[i], path, "env", "name", parts.env, At::back);
    add_missing(patch, applications[i], path, "volumeMounts", "mountPath", parts.volume_mounts, At::back);
  }
  const Json* const before = list_of(spec, "initContainers");
  for (std::size_t i = 0; before != nullptr && i < before->size(); ++i) {
    const std::string path = "/spec/initContainers/" + std::to_string(i);
    add_missing(patch, (*before)[i], path, "volumeMounts", "mountPath", parts.init_volume_mounts, At::back);
  }
  add_missing(patch, spec, "/spec", "initContainers", "name", parts.init_containers, At::front);
  add_missing(patch, spec, "/spec", "containers", "name", parts.containers, At::back);
  add_missing(patch, spec, "/spec", "volumes", "name", parts.volumes, At::back);
  return patch;
}

}  // namespace carpool::proxy::webhook
