// Injection: the additions to a pod, which the chart passes in one JSON file: the container (native sidecar or
// ordinary), its volumes, the variables and mounts of the application's containers, and the configuration as TOML.
// Included only by this directory's .cc files and patch.h, which alone use nlohmann's library here.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_bounds.h"
#include "base/result.h"

namespace carpool::proxy::webhook {

// Keeps objects in a tree, because the variant that keeps the order of members searches linearly.
using Json = nlohmann::json;

// Nothing here or below throws: the library's moves only assert.
struct Parts {                       // NOLINT(bugprone-exception-escape)
  Json init_containers, containers;  // arrays; the sidecar is in one of them
  Json volumes;                      // array
  Json env, volume_mounts;           // arrays, added to the application's containers
  Json init_volume_mounts;           // array, added to the application's init containers
};

// InterceptParts: the parts of a pod with intercepted origins, which replace the others.
struct InterceptParts {  // NOLINT(bugprone-exception-escape)
  Parts parts;
  std::string ca_dir;
  // The init container that creates the authority; the hosts are appended to its arguments. Empty: the authority
  // exists.
  std::string authority;
};

struct Injection {   // NOLINT(bugprone-exception-escape)
  std::string name;  // name of the sidecar; a pod that already has a container of this name is not changed
  Parts parts;
  std::optional<InterceptParts> intercept;
  std::string config;  // carpool's configuration
};

// The Fault names the member that is missing or has the wrong type.
Result<Injection> parse_injection(std::string_view text);

}  // namespace carpool::proxy::webhook
