// pool_explorer: explores all interleavings of threads in the real pool, within bounds.
//
//   pool_explorer [--preemptions N] [--old N] [--most RUNS] [--random RUNS] [--seed S] [--only WORDS]
//                 [--weaken] [--sites] [--control "SITE ORDER"]
//
// Prints, per scenario, the runs and whether those were all within the bounds. The controls must fail: --weaken
// turns seq_cst into acq_rel, --control makes one order of one site weaker. --sites lists the sites that were reached.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/explorer/scenarios.h"

namespace carpool::explore {
namespace {

extern "C" void tell_schedule(int) {
  std::printf("FAILED: %s: an assert\nschedule %s\n", Machine::the().name, Machine::the().schedule().c_str());
  std::fflush(stdout);
}

void run(const Named& scenario, const Bounds& bounds) {
  Machine& machine = Machine::the();
  machine.name = scenario.name;
  const auto began = std::chrono::steady_clock::now();
  const Machine::Outcome outcome = machine.explore(bounds, scenario.make);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::printf("%-52s %9llu runs, %s, %.1f s\n", scenario.name, static_cast<unsigned long long>(outcome.runs),
              outcome.complete ? "all"
              : bounds.random  ? "by lot"
                               : "the first",
              took.count());
  std::fflush(stdout);
}

}  // namespace
}  // namespace carpool::explore

int main(int argc, char** argv) {
  using namespace carpool::explore;
  Bounds bounds;
  const char* only = "";
  for (int i = 1; i < argc; ++i) {
    const auto number = [&] { return i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0; };
    if (std::strcmp(argv[i], "--preemptions") == 0) bounds.preemptions = static_cast<unsigned>(number());
    if (std::strcmp(argv[i], "--old") == 0) bounds.old = static_cast<unsigned>(number());
    if (std::strcmp(argv[i], "--most") == 0) bounds.most = number();
    if (std::strcmp(argv[i], "--random") == 0) bounds.random = (bounds.most = number()) != 0;
    if (std::strcmp(argv[i], "--seed") == 0) bounds.seed = number();
    if (std::strcmp(argv[i], "--weaken") == 0) Machine::the().sites.weaken_seq_cst();
    if (std::strcmp(argv[i], "--sites") == 0) Machine::the().sites.note_all();
    if (std::strcmp(argv[i], "--control") == 0 && i + 1 < argc) Machine::the().sites.weaken(argv[++i]);
    if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc) only = argv[++i];
  }
  std::signal(SIGABRT, tell_schedule);
  bool found = false;
  for (const auto& list :
       {pool_scenarios(), destination_scenarios(), cancel_dial_scenarios(), command_scenarios(), search_scenarios(),
        budget_scenarios(), exec_scenarios(), mail_scenarios(), record_scenarios()}) {
    for (const Named& scenario : list) {
      if (std::strstr(scenario.name, only) == nullptr) continue;
      found = true;
      run(scenario, bounds);
    }
  }
  Machine::the().sites.print();
  if (!found) std::fprintf(stderr, "no scenario has these words in its name: %s\n", only);
  return found ? 0 : 2;
}
