// The explorer's scenarios by name: each is a few threads over the real code at the critical moment.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tests/explorer/machine.h"

namespace carpool::explore {

struct Named {
  const char* name;
  std::function<std::unique_ptr<Scenario>()> make;
};

std::vector<Named> pool_scenarios();
std::vector<Named> destination_scenarios();
std::vector<Named> budget_scenarios();
std::vector<Named> exec_scenarios();

template <class S>
Named named(const char* name) {
  return {name, [] { return std::make_unique<S>(); }};
}

}  // namespace carpool::explore
