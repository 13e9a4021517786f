// data_plane_sim: clients, exchanges, router, pool and streams to origins, on virtual time and virtual wires, on up to
// three loops. One seed is one history, and the same seed is run twice for some: both must do the same. The oracles:
// every byte belongs to the request of its reader; a response is complete or visibly broken; a request ends once and is
// repeated only where that is proven harmless; nothing is lent, waits or lives longer than it may.
//
//   data_plane_sim [--seconds N] [--seed S] [--histories N] [--shrink no] [--plan FILE] | --print SEED
#include <malloc.h>

#include <cstdio>
#include <fstream>

#include "proxy/telemetry/log.h"
#include "proxy/telemetry/log_levels.h"
#include "tests/sim/data_plane/generator.h"
#include "tests/sim/data_plane/pinned_plans.h"
#include "tests/sim/data_plane/shrink.h"
#include "tests/sim/histories.h"

namespace carpool::test {
namespace {

void print_script(const Plan& plan) {
  std::printf("script for --plan:\n%s", script_of(plan).c_str());
  std::fflush(stdout);
}
bool shrinks = true;  // a plan that fails

int replay(const char* file) {
  std::ifstream script(file);
  const Plan plan = plan_of(script);
  if (shrinks && !failure_of(plan).empty()) print_script(shrunk(plan));
  PlaneHistory history(plan);
  const std::string wrong = history.run();
  std::printf("%s\n", wrong.empty() ? "no oracle complained" : wrong.c_str());
  return wrong.empty() ? 0 : 1;
}

int print(const char* seed) {
  std::printf("%s", script_of(plan_of(std::strtoull(seed, nullptr, 10))).c_str());
  return 0;
}

// Returns false if an oracle complains about a pinned plan.
bool pinned_plans_pass() {
  for (const PinnedPlan& pinned : kPinnedPlans) {
    std::istringstream script(pinned.script);
    const Plan plan = plan_of(script);
    PlaneHistory history(plan);
    const std::string wrong = history.run();
    if (wrong.empty()) continue;
    print_script(plan);
    std::printf("FAILED: %s: %s\n", pinned.defect, wrong.c_str());
    return false;
  }
  return true;
}

struct Seed {
  explicit Seed(std::uint64_t seed) : plan(plan_of(seed)) {}
  std::string run() {
    PlaneHistory history(plan);
    std::string wrong = history.run();
    requests = history.account().requests.size();
    for (const RequestRecord& one : history.account().requests) whole += one.ends;
    if (wrong.empty() && plan.seed % 64 == 0) {
      PlaneHistory again(plan);
      again.run();
      if (again.account().hash != history.account().hash) wrong = "two runs of one seed differ";
    }
    if (!wrong.empty()) shrink();
    return wrong;
  }
  void shrink() const {
    if (shrinks && !failure_of(plan).empty()) print_script(shrunk(plan));
  }
  const Plan plan;
  std::size_t requests = 0, whole = 0;
};

// A failed assert counts as a failure of an oracle.
void on_assert(int) {
  std::signal(SIGABRT, SIG_DFL);
  print_repetition(stdout);
  Seed(running.seed).shrink();
  std::_Exit(1);
}

// A history frees what it has; the kernel would clear each page again for the next one.
void keep_memory() {
  constexpr int kMost = 32 << 20;  // of M_MMAP_THRESHOLD
  mallopt(M_MMAP_THRESHOLD, kMost);
  mallopt(M_TRIM_THRESHOLD, 8 * kMost);
}

}  // namespace
}  // namespace carpool::test

int main(int argc, char** argv) {
  using namespace carpool::test;
  keep_memory();
  carpool::proxy::log::set_access(getenv("DBG") != nullptr, 1);
  carpool::proxy::log::set_level(carpool::proxy::log::Level::off);
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--plan") == 0) return replay(argv[i + 1]);
    if (std::strcmp(argv[i], "--print") == 0) return print(argv[i + 1]);
    if (std::strcmp(argv[i], "--shrink") == 0) shrinks = false;
  }
  const Histories asked = histories_of("data_plane_sim", argc, argv);
  // A defect of the controls must be found by seeds.
  if (asked.seed == 1 && std::getenv("CARPOOL_MUTANT") == nullptr && !pinned_plans_pass()) return 1;
  std::uint64_t requests = 0, whole = 0;
  const std::uint64_t done = run_histories<Seed>(asked, [&requests, &whole](const Seed& one) {
    if (requests == 0) std::signal(SIGABRT, on_assert);
    requests += one.requests;
    whole += one.whole;
  });
  std::printf("%llu histories from seed %llu, %llu requests, %llu whole responses: no oracle complained\n",
              static_cast<unsigned long long>(done), static_cast<unsigned long long>(asked.seed),
              static_cast<unsigned long long>(requests), static_cast<unsigned long long>(whole));
  return 0;
}
