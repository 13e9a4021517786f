// data_plane_fuzz: clients and origins together, of both protocols, in the simulated data plane. An input is a plan's
// script, as data_plane_sim prints and replays it, with noise in the bytes of either side. All oracles judge a request
// unless noise may have reached it; the pool and all other requests are always judged.
#include <cstring>
#include <sstream>

#include "proxy/telemetry/log.h"
#include "proxy/telemetry/log_levels.h"
#include "tests/fuzz/bounded_plan.h"
#include "tests/fuzz/plan_mutator.h"
#include "tests/sim/data_plane/plane_history.h"

namespace carpool::fuzz {
namespace {

test::Plan plan_in(const std::uint8_t* data, std::size_t size) {
  std::istringstream script(std::string(reinterpret_cast<const char*>(data), size));
  return bounded(test::plan_of(script));
}

}  // namespace
}  // namespace carpool::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace carpool;
  [[maybe_unused]] static const bool quiet = (proxy::log::set_access(false, 1), true);
  const test::Plan plan = fuzz::plan_in(data, size);
  if (plan.clients.empty()) return 0;
  test::PlaneHistory history(plan);
  const std::string wrong = history.run();
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "%s\nscript for data_plane_sim --plan:\n%s", wrong.c_str(), script_of(plan).c_str());
  std::abort();
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  using namespace carpool;
  test::Plan plan = fuzz::plan_in(data, size);
  fuzz::PlanMutator mutator(seed);
  for (unsigned n = 1 + seed % 4; n > 0; --n) mutator.mutate(plan);
  const std::string script = script_of(fuzz::bounded(std::move(plan)));
  if (script.size() > most) return size;
  std::memcpy(data, script.data(), script.size());
  return script.size();
}
