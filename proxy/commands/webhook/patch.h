// The JSON Patch (RFC 6902) that adds an Injection to a pod. Pure.
#pragma once

#include <string>

#include "proxy/commands/webhook/injection.h"

namespace carpool::proxy::webhook {

// Written to the pod: the configuration of its carpool, which a volume of the downward API shows to the container (so
// it needs no ConfigMap in the pod's namespace, and a change of the annotation arrives in place); and who did it.
inline constexpr const char* kEffective = "carpool.io/effective-config";
inline constexpr const char* kInjected = "carpool.io/injected";

// The pod has a container of that name, of either kind: injected before, or brought by its own chart.
bool has_sidecar(const Json& pod, const std::string& name);

// `pod` has a spec with containers. The sidecar comes before the pod's own init containers, so that these find it.
// Every container of the application gets those variables and mounts that it does not name itself.
Json patch_of(const Json& pod, const Injection& injection, const std::string& config, const std::string& version);

}  // namespace carpool::proxy::webhook
