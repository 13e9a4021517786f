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
std::vector<Named> cancel_dial_scenarios();
std::vector<Named> command_scenarios();
std::vector<Named> search_scenarios();
std::vector<Named> budget_scenarios();
std::vector<Named> exec_scenarios();
std::vector<Named> mail_scenarios();
std::vector<Named> record_scenarios();

// Plain memory of a scenario: an access that is not ordered after the conflicting ones of other threads fails the run.
class Plain {
 public:
  [[gnu::noinline]] void read() const { Machine::the().plain(this, 1, false, __builtin_return_address(0)); }
  [[gnu::noinline]] void write() { Machine::the().plain(this, 1, true, __builtin_return_address(0)); }

 private:
  [[maybe_unused]] char memory_ = 0;
};

template <class S>
Named named(const char* name) {
  return {name, [] { return std::make_unique<S>(); }};
}

}  // namespace carpool::explore
