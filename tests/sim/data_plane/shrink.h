// Shrinks a plan that fails: leaves out clients, requests and responses, and lowers numbers, as long as it still fails.
// Each trial is a process of its own, so an assert of the simulated code is a failure like any other.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>

#include <algorithm>
#include <csignal>
#include <string>

#include "tests/sim/data_plane/plane_history.h"

namespace carpool::test {

// Returns the complaint about a plan, without its digits; an assert or a hang has a text of its own. Empty: none.
inline std::string failure_of(const Plan& plan) {
  int ends[2];
  if (pipe(ends) != 0) return "";
  const pid_t child = fork();
  if (child == 0) {
    const int sink = open("/dev/null", O_WRONLY);
    dup2(sink, 1);
    dup2(sink, 2);
    alarm(10);
    std::signal(SIGABRT, SIG_DFL);
    PlaneHistory history(plan);
    const std::string wrong = history.run();
    _exit(write(ends[1], wrong.data(), wrong.size()) < 0 || !wrong.empty() ? 1 : 0);  // without the destructors
  }
  close(ends[1]);
  std::string said(1000, ' ');
  const ssize_t size = read(ends[0], said.data(), said.size());
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status == 0) return "";
  said.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  if (said.empty()) return "signal " + std::to_string(status);
  std::erase_if(said, [](char c) { return c >= '0' && c <= '9'; });
  return said;
}

inline std::string shrunk_failure;  // of the plan that is being shrunk

// Calls `change(copy)` and keeps the copy if it still fails in the same way.
template <class Change>
bool try_change(Plan& plan, const Change& change) {
  Plan copy = plan;
  change(copy);
  if (failure_of(copy) != shrunk_failure) return false;
  plan = std::move(copy);
  return true;
}

template <class Pick>
bool leave_out(Plan& plan, const Pick& list) {
  bool less = false;
  for (std::size_t n = list(plan).size(); n-- > 0;) {
    less |=
        try_change(plan, [&](Plan& copy) { list(copy).erase(list(copy).begin() + static_cast<std::ptrdiff_t>(n)); });
  }
  return less;
}

template <class One>
std::uint32_t& nth_number(One& one, std::size_t wanted) {
  std::uint32_t* found = nullptr;
  each_number(one, [&](std::uint32_t& number) { found = wanted-- == 0 ? &number : found; });
  return *found;
}
template <class One>
std::size_t numbers_of(One& one) {
  std::size_t count = 0;
  each_number(one, [&count](std::uint32_t) { ++count; });
  return count;
}

// Lowers the numbers of the element that `pick` finds in a plan, from one on.
template <class Pick>
bool lower(Plan& plan, const Pick& pick, std::size_t from = 0, std::size_t to = SIZE_MAX) {
  bool less = false;
  for (std::size_t n = from; n < std::min(to, numbers_of(pick(plan))); ++n) {
    while (nth_number(pick(plan), n) != 0) {
      const bool none = try_change(plan, [&](Plan& copy) { nth_number(pick(copy), n) = 0; });
      less |= none;
      if (none || !try_change(plan, [&](Plan& copy) { nth_number(pick(copy), n) /= 2; })) break;
      less = true;
    }
  }
  return less;
}

inline bool shrink_request(Plan& plan, std::size_t c, std::size_t r) {
  const auto at = [=](Plan& p) -> RequestPlan& { return p.clients[c].requests[r]; };
  bool less = leave_out(plan, [&](Plan& p) -> std::vector<ResponsePlan>& { return at(p).responses; });
  less |= lower(plan, at);
  for (std::size_t a = 0; a < at(plan).responses.size(); ++a) {
    less |= lower(
        plan, [&](Plan& p) -> ResponsePlan& { return at(p).responses[a]; }, 1);  // not the status
  }
  return less;
}

inline Plan shrunk(Plan plan) {
  shrunk_failure = failure_of(plan);
  for (bool less = true; less;) {
    less = leave_out(plan, [](Plan& p) -> std::vector<NoisePlan>& { return p.noise; });
    less |= leave_out(plan, [](Plan& p) -> std::vector<ClientPlan>& { return p.clients; });
    for (std::size_t c = 0; c < plan.clients.size(); ++c) {
      less |= leave_out(plan, [=](Plan& p) -> std::vector<RequestPlan>& { return p.clients[c].requests; });
      less |= lower(plan, [=](Plan& p) -> ClientPlan& { return p.clients[c]; });
      for (std::size_t r = 0; r < plan.clients[c].requests.size(); ++r) less |= shrink_request(plan, c, r);
    }
    less |= lower(
        plan, [](Plan& p) -> Plan& { return p; }, 5, 7);  // the others are meaningless when they are small
  }
  return plan;
}

}  // namespace carpool::test
