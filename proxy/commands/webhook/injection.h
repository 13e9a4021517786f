// Injection: the additions to a pod, as the chart passes them in one JSON file: the container (native sidecar or
// ordinary), its volumes, the variables and mounts of the application's containers, and the configuration as TOML.
// Included by this directory's .cc files only, which, with patch.h, are the place that uses nlohmann's library.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_bounds.h"
#include "base/result.h"

namespace carpool::proxy::webhook {

// Objects in a tree: the variant that keeps the order of members searches linearly.
using Json = nlohmann::json;

// Nothing throws here or below: the library's moves only assert.
struct Parts {                       // NOLINT(bugprone-exception-escape)
  Json init_containers, containers;  // arrays; the sidecar is in one of them
  Json volumes;                      // array
  Json env, volume_mounts;           // arrays, added to the application's containers
  Json init_volume_mounts;           // array, added to the application's init containers
};

// The parts of a pod with intercepted origins, instead of the others.
struct InterceptParts {  // NOLINT(bugprone-exception-escape)
  Parts parts;
  std::string ca_dir;
  // The init container that makes the authority: the hosts are appended to its arguments. Empty: the authority exists.
  std::string authority;
};

struct Injection {   // NOLINT(bugprone-exception-escape)
  std::string name;  // of the sidecar: a pod that already has a container of this name is not changed
  Parts parts;
  std::optional<InterceptParts> intercept;
  std::string config;  // carpool's configuration
};

// The Fault names the member that is missing or has a wrong type.
Result<Injection> parse_injection(std::string_view text);

}  // namespace carpool::proxy::webhook
