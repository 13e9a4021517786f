// Injection: what is added to a pod, as the chart hands it over in one JSON file: the container (native or ordinary),
// its volumes, what the application's containers get, and the configuration as TOML. Included by this directory's .cc
// files only, with patch.h the place that knows nlohmann's library.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/json_bounds.h"
#include "base/result.h"

namespace carpool::proxy::webhook {

// Objects in a tree: one that keeps the order of its members looks through all of them for each.
using Json = nlohmann::json;

// Nothing throws here: the library's moves only assert.
struct Injection {                   // NOLINT(bugprone-exception-escape)
  std::string name;                  // of the container: a pod that has one of this name is left alone
  Json init_containers, containers;  // arrays; one of them is empty
  Json volumes;                      // array
  Json env, volume_mounts;           // arrays, for the application's containers
  std::string config;                // carpool's configuration
};

// The Fault names what is missing or has another type.
Result<Injection> parse_injection(std::string_view text);

}  // namespace carpool::proxy::webhook
