// The JSON Patch (RFC 6902) that adds the parts of an Injection to a pod. Pure.
#pragma once

#include <string>

#include "proxy/commands/webhook/injection.h"

namespace carpool::proxy::webhook {

// Annotation added to the pod: the effective configuration, which a downward API volume passes to the container.
// Therefore the pod's namespace needs no ConfigMap, and a change of the annotation takes effect in place. The other
// annotation is the version that injected it.
inline constexpr const char* kEffective = "carpool.io/effective-config";
inline constexpr const char* kInjected = "carpool.io/injected";
// The label that requests carpool. A pod that requests it by an annotation also gets the label, so that monitors select
// it.
inline constexpr const char* kLabel = "carpool.io/inject";

// Returns true if the pod has a container of that name, of either kind: injected earlier, or part of its own chart.
bool has_sidecar(const Json& pod, const std::string& name);

// Returns why these parts cannot be added: the pod has a container or a volume of its own with the name of one of them.
// Empty: they can. A volume of the same kind, which the application's containers mount too, is no conflict.
std::string conflict_of(const Json& pod, const Parts& parts);

// `pod` must have a spec with containers. The sidecar is placed before the pod's own init containers, so that they can
// use it. Every application container gets those variables and mounts that it does not define itself, in either
// spelling of a proxy variable; every init container of the pod gets only mounts.
Json patch_of(const Json& pod, const Parts& parts, const std::string& config, const std::string& version);

}  // namespace carpool::proxy::webhook
