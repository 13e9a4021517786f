// The response of /pools/{origin}/advice.
#include "pool/directory/size_advice.h"
#include "proxy/server/admin/handlers/analysis.h"
#include "proxy/server/admin/handlers/analysis_text.h"
#include "proxy/server/admin/query.h"

namespace carpool::proxy::admin {

namespace {
constexpr std::string_view kMethod =
    "The recorded borrows are replayed on pools of other sizes, with the pool's own code and a virtual clock: each "
    "takes as long as it did, a dial as long as the average dial, and a client that asked again at once does so again. "
    "Recommended is the smallest size with which 199 of 200 replayed borrows wait no longer than the target, so that "
    "99 of 100 will (parameter wait; default: a tenth of the mean hold time, 1 ms at least). The range is what the "
    "quarters of the record require, each alone. Rates and loads are those of the time in use: gaps of a second or "
    "longer without a borrow do not count.";

std::string range_text(const pool::SizeAdvice& a) {
  if (a.range_min == a.range_max) return "; each quarter of the record alone requires the same";
  return "; quarters of the record alone require " + std::to_string(a.range_min) + " to " + std::to_string(a.range_max);
}

std::string size_sentence(const pool::SizeAdvice& a, const pool::Limits& limits) {
  std::string size = "size = " + std::to_string(a.size) + ": 99 of 100 borrows wait at most " +
                     time(a.expected.p99_wait) + (a.met ? " (target " : " (more than the target of ") + time(a.target) +
                     ")" + range_text(a);
  size += ". With the current size of " + std::to_string(limits.size) + " the replay gives " + time(a.current.p99_wait);
  if (const auto lost = a.current.refused + a.current.timed_out; lost != 0) {
    size += ", and " + counted(lost, "borrow") + " refused or timed out";
  }
  return size + "; measured were " + time(a.load.p99_wait) + ".";
}

std::vector<std::string> sentences(const pool::SizeAdvice& a, const pool::Limits& limits) {
  const pool::MeasuredLoad& load = a.load;
  std::vector<std::string> lines;
  lines.push_back(std::to_string(load.borrows) + " borrows in " + time(load.window) + ", " + time(load.in_use) +
                  " of it in use: " + rounded(load.arrival_rate) + " a second, each holding its connection for " +
                  time(load.mean_hold) + " on average (p99 " + time(load.p99_hold) + "); that keeps " +
                  rounded(load.offered_load) + " busy.");
  lines.push_back("Measured waits: " + time(load.mean_wait) + " on average, p99 " + time(load.p99_wait) +
                  ". Borrowed at once: " + std::to_string(load.busy_median) + " (median), " +
                  std::to_string(load.busy_p99) + " (p99), " + std::to_string(load.busy_max) +
                  " (maximum); borrowed or waiting: " + std::to_string(load.asked_max) + ".");
  lines.push_back(size_sentence(a, limits));
  if (a.min_idle > limits.min_idle) {
    lines.push_back("min_idle = " + std::to_string(a.min_idle) + ": dials take longer than the target.");
  } else if (!a.met) {
    lines.push_back("No size meets the target: the remaining waits are for dials.");
  }
  return lines;
}

Json json_of(const pool::SizeAdvice& a, const pool::Limits& limits) {
  const pool::MeasuredLoad& load = a.load;
  Json json;
  json["borrows"] = load.borrows;
  json["window_seconds"] = seconds(load.window);
  json["in_use_seconds"] = seconds(load.in_use);
  json["arrivals_per_second"] = load.arrival_rate;
  json["hold_seconds"] = {{"mean", seconds(load.mean_hold)}, {"p99", seconds(load.p99_hold)}};
  json["wait_seconds"] = {{"mean", seconds(load.mean_wait)}, {"p99", seconds(load.p99_wait)}};
  json["offered_load"] = load.offered_load;
  json["busy"] = {{"median", load.busy_median}, {"p99", load.busy_p99}, {"max", load.busy_max}};
  add_old_names(json["busy"], {{"max", "most"}});
  json["asked_max"] = load.asked_max;
  json["target_seconds"] = seconds(a.target);
  json["target_met"] = a.met;
  json["current"] = {{"size", limits.size},
                     {"expected_wait_seconds", seconds(a.current.mean_wait)},
                     {"expected_p99_wait_seconds", seconds(a.current.p99_wait)},
                     {"expected_refused", a.current.refused + a.current.timed_out}};
  json["recommended"] = {{"size", a.size},
                         {"min_idle", a.min_idle},
                         {"range", {{"min", a.range_min}, {"max", a.range_max}}},
                         {"expected_wait_seconds", seconds(a.expected.mean_wait)},
                         {"expected_p99_wait_seconds", seconds(a.expected.p99_wait)}};
  json["explanation"] = sentences(a, limits);
  add_old_names(json, {{"current", "present"}, {"explanation", "sentences"}, {"target_seconds", "goal_seconds"}});
  return json;
}
}  // namespace

Response advice_response(const PoolInfo& pool, const PoolAnalysis& study, std::string_view target) {
  QueryReader query(target);
  const std::optional<Duration> wait = query.duration_above_zero("wait");
  if (query.error()) return error_response(400, *query.error());
  Json json;
  json["origin"] = pool.origin;
  json["method"] = std::string(kMethod);
  if (const auto advice = pool::advise_size(workload_of(pool, study), study.limits, study.wait_timeout, wait)) {
    json["advice"] = json_of(*advice, study.limits);
  } else {
    json["advice"] = nullptr;
    json["reason"] = "only " + std::to_string(study.past.size()) + " borrows so far, " +
                     std::to_string(pool::kMinBorrows) + " are needed";
    add_old_names(json, {{"reason", "why_not"}});
  }
  return json_response(200, json);
}

}  // namespace carpool::proxy::admin
