// HealthCheck: checks the idle connections of one loop every interval, with jitter. Without a configured probe it
// checks the socket for an end that no event reported; with one it sends a request on a few connections at a time,
// under leases of its own. Never dials and never takes a connection that a waiting borrower needs.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <unordered_map>

#include "base/random.h"
#include "exec/loop.h"
#include "proxy/upstream/health/probe.h"

namespace carpool::proxy {

struct UpstreamContext;
struct OriginRuntime;

class HealthCheck final : public Probe::Owner {
 public:
  explicit HealthCheck(const UpstreamContext& context);
  ~HealthCheck();
  void start() LOOP_ONLY;
  void stop() LOOP_ONLY;  // cancels running probes
  // Must be called before these pools, sorted by address, are destroyed: none of their connections is idle any more.
  void forget(const std::vector<pool::Destination*>& leaving) LOOP_ONLY;

 private:
  // Candidate: an idle connection at the time of the visit.
  struct Candidate {
    OriginRuntime* origin;
    std::uint32_t index, generation;
  };
  void tick();
  void check(OriginRuntime& origin, Instant now) LOOP_ONLY;
  void check_one(const Candidate& candidate, Instant now) LOOP_ONLY;
  void start_probes(Instant now) LOOP_ONLY;
  void probed(Probe& probe, std::string_view why) override LOOP_ONLY;
  Duration jittered(Duration interval) LOOP_ONLY;

  const UpstreamContext& context_;
  exec::Timer timer_;
  std::unordered_map<const OriginRuntime*, Instant> due_ LOOP_LOCAL;
  std::deque<Candidate> candidates_ LOOP_LOCAL;
  List<Probe, ProbeTag> probes_ LOOP_LOCAL;  // owned
  std::size_t probe_count_ LOOP_LOCAL = 0;   // number of probes in probes_
  bool starting_probes_ LOOP_LOCAL = false;
  Random random_ LOOP_LOCAL;
};

}  // namespace carpool::proxy
