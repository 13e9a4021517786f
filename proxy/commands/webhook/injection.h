// Injection: the additions to a pod, as the chart passes them in one JSON file: the container (native sidecar or
// ordinary), its volumes, the variables and mounts of the application's containers, and the configuration as TOML.
// Included by this directory's .cc files only, which, with patch.h, are the place that uses nlohmann's library.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/json_bounds.h"
#include "base/result.h"

namespace carpool::proxy::webhook {

// Objects in a tree: the variant that keeps the order of members searches linearly.
using Json = nlohmann::json;

// Nothing throws here: the library's moves only assert.
struct Injection {                   // NOLINT(bugprone-exception-escape)
  std::string name;                  // of the container: a pod that already has one of this name is not changed
  Json init_containers, containers;  // arrays; one of them is empty
  Json volumes;                      // array
  Json env, volume_mounts;           // arrays, added to the application's containers
  std::string config;                // carpool's configuration
};

// The Fault names the member that is missing or has a wrong type.
Result<Injection> parse_injection(std::string_view text);

}  // namespace carpool::proxy::webhook
