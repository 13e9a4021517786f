// The JSON Patch (RFC 6902) that adds the parts of an Injection to a pod. Pure.
#pragma once

#include <string>

#include "proxy/commands/webhook/injection.h"

namespace carpool::proxy::webhook {

// Annotations added to the pod: the effective configuration, which a downward API volume shows to the container (so no
// ConfigMap is needed in the pod's namespace, and a change of the annotation takes effect in place), and the version
// that injected it.
inline constexpr const char* kEffective = "carpool.io/effective-config";
inline constexpr const char* kInjected = "carpool.io/injected";
// The label that asks for carpool. A pod that asks by an annotation gets it too, so that monitors select it.
inline constexpr const char* kLabel = "carpool.io/inject";

// Returns true if the pod has a container of that name, of either kind: injected before, or part of its own chart.
bool has_sidecar(const Json& pod, const std::string& name);

// `pod` has a spec with containers. The sidecar is placed before the pod's own init containers, so that it is available
// to them. Every application container gets those variables and mounts that it does not define itself, every init
// container of the pod only mounts.
Json patch_of(const Json& pod, const Parts& parts, const std::string& config, const std::string& version);

}  // namespace carpool::proxy::webhook
