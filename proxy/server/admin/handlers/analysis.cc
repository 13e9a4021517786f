#include "proxy/server/admin/handlers/analysis.h"

#include <string>

#include "pool/directory/what_if.h"
#include "proxy/server/admin/handlers/analysis_text.h"
#include "proxy/server/admin/json.h"
#include "proxy/server/admin/query.h"

namespace carpool::proxy::admin {

namespace {
Json seconds_or_null(const std::optional<Duration>& duration) {
  return duration ? Json(seconds(*duration)) : Json(nullptr);
}

// ---- what if ----

template <std::size_t N>
Json causes(const std::array<std::string_view, N>& names, const std::array<std::uint64_t, N>& counts) {
  Json json = Json::object();
  for (std::size_t i = 0; i < N; ++i) {
    if (counts[i] != 0) json[std::string(names[i])] = counts[i];
  }
  return json;
}

Json json_of(const pool::Limits& limits, Duration wait_timeout) {
  return {{"size", limits.size},
          {"min_idle", limits.min_idle},
          {"max_waiting", limits.max_waiting},
          {"max_usage", limits.max_usage},
          {"idle_timeout_seconds", seconds(limits.idle_timeout)},
          {"expire_time_seconds", seconds(limits.expire_time)},
          {"wait_timeout_seconds", seconds(wait_timeout)}};
}

Json json_of(const pool::SimulationResult& outcome) {
  return {{"served", outcome.served},
          {"refused", outcome.refused},
          {"timed_out", outcome.timed_out},
          {"handshakes", outcome.opened},
          {"reused", outcome.reused},
          {"peak", outcome.peak},
          {"opened", causes(pool::kOpenCauseNames, outcome.opened_by)},
          {"closed", causes(pool::kCloseCauseNames, outcome.closed_by)},
          {"waited", outcome.waited},
          {"wait_seconds",
           {{"mean", seconds(outcome.mean_wait)},
            {"p50", seconds(outcome.p50_wait)},
            {"p99", seconds(outcome.p99_wait)},
            {"longest", seconds(outcome.longest_wait)}}}};
}

struct Settings {
  pool::Limits limits;
  Duration wait_timeout{};
};

// Changes the settings that the query of `target` names. Returns why the result cannot be simulated.
std::optional<std::string> change(Settings& settings, std::string_view target) {
  QueryReader query(target);
  pool::Limits& limits = settings.limits;
  limits.size = query.number("size", 1, 100'000).value_or(limits.size);
  limits.min_idle = query.number("min_idle", 0, 100'000).value_or(limits.min_idle);
  limits.max_waiting = query.number("max_waiting", 0, 1'000'000).value_or(limits.max_waiting);
  limits.max_usage = query.number("max_usage", 0, (1 << 20) - 1).value_or(limits.max_usage);
  limits.idle_timeout = query.duration("idle_timeout").value_or(limits.idle_timeout);
  limits.expire_time = query.duration("expire_time").value_or(limits.expire_time);
  settings.wait_timeout = query.duration_above_zero("wait_timeout").value_or(settings.wait_timeout);
  if (query.error() || limits.min_idle <= limits.size) return query.error();
  return "min_idle: " + std::to_string(limits.min_idle) + " is more than size, " + std::to_string(limits.size);
}

std::vector<std::string> sentences(const pool::SimulationResult& now, const pool::SimulationResult& then) {
  const bool more = then.opened > now.opened;
  std::vector<std::string> lines;
  if (then.opened == now.opened) {
    lines.push_back(counted(then.opened, "connection") + " and as many handshakes as with the current settings.");
  } else {
    lines.push_back(counted(then.opened, "connection") + " instead of " + std::to_string(now.opened) + ": " +
                    (more ? counted(then.opened - now.opened, "more handshake") + "."
                          : counted(now.opened - then.opened, "handshake") + " saved."));
  }
  lines.push_back("Waits: " + time(then.mean_wait) + " on average and p99 " + time(then.p99_wait) + " instead of " +
                  time(now.mean_wait) + " and " + time(now.p99_wait) + ".");
  if (then.refused + then.timed_out + now.refused + now.timed_out != 0) {
    lines.push_back(counted(then.refused + then.timed_out, "request") + " refused or timed out instead of " +
                    std::to_string(now.refused + now.timed_out) + ".");
  }
  return lines;
}
// The results are those of carpool_intercept_connects_total.
std::string intercept_sentence(const metrics::Labelled& connects) {
  const std::string result = " (result " + std::string(connects.label) + ").";
  const std::string begin = counted(connects.value, "CONNECT");
  if (connects.label == "intercepted") return begin + " ended here, and the requests inside used this pool" + result;
  if (connects.label == "refused") return begin + " ended because the client does not trust the authority" + result;
  if (connects.label == "failed") return begin + " ended with a failed TLS handshake of the client" + result;
  return begin + " became " + (connects.value == 1 ? "a tunnel" : "tunnels") + result;
}

void say_credentials(std::vector<std::string>& lines, const CredentialsState& state) {
  if (state.stale_files != 0) {
    lines.push_back(counted(state.stale_files, "file") +
                    " with credentials cannot be used; the last good value stays.");
  }
  if (state.token == "valid" && state.token_expires) {
    lines.push_back("The token of [origin.oauth2] is valid for " + time(*state.token_expires) + ".");
  } else if (!state.token.empty()) {
    lines.push_back("There is no token of [origin.oauth2] yet: requests " +
                    std::string(state.token == "expected" ? "wait for it." : "fail."));
  }
  if (!state.failure.empty()) lines.push_back("The last request for a token failed: " + state.failure + ".");
}

std::string refusal_sentence(const metrics::RefusalSample& one) {
  std::string line = counted(one.refusals, "refusal") + " of the certificate by clients that offer ";
  line.append(one.offer).append(one.alert == "none" ? ", without an alert" : ", with the alert ");
  if (one.alert != "none") line.append(one.alert);
  return line.append(".");
}
}  // namespace

Response explain_response(const PoolInfo& pool, const PoolAnalysis& study) {
  std::vector<std::string> lines = explain(pool.snapshot, study.explain_settings);
  if (!study.intercepts.empty() || !study.refusals.empty()) {
    lines.emplace_back("Since carpool started, with earlier pools of this origin:");
  }
  for (const metrics::Labelled& one : study.intercepts) lines.push_back(intercept_sentence(one));
  for (const metrics::RefusalSample& one : study.refusals) lines.push_back(refusal_sentence(one));
  if (study.credentials) say_credentials(lines, *study.credentials);
  Json json{{"origin", pool.origin}, {"explanation", std::move(lines)}};
  add_old_names(json, {{"explanation", "sentences"}});
  return json_response(200, json);
}

Response what_if_response(const PoolInfo& pool, const PoolAnalysis& study, std::string_view target) {
  Settings changed{study.limits, study.wait_timeout};
  if (const auto error = change(changed, target)) return error_response(400, *error);
  const pool::Workload load = workload_of(pool, study);
  const pool::SimulationResult now = simulate(load, study.limits, study.wait_timeout);
  const pool::SimulationResult then = simulate(load, changed.limits, changed.wait_timeout);
  Json json;
  json["origin"] = pool.origin;
  json["borrows"] = study.past.size();
  json["dial_seconds"] = seconds(pool.snapshot.dial_time);
  json["origin_closes_after_seconds"] = seconds_or_null(pool.snapshot.learned_idle);
  json["current"] = {{"settings", json_of(study.limits, study.wait_timeout)}, {"outcome", json_of(now)}};
  json["simulated"] = {{"settings", json_of(changed.limits, changed.wait_timeout)}, {"outcome", json_of(then)}};
  json["handshakes_saved"] = static_cast<std::int64_t>(now.opened) - static_cast<std::int64_t>(then.opened);
  json["explanation"] = study.past.empty() ? std::vector<std::string>{"No borrow is recorded yet: there is no load to "
                                                                      "simulate."}
                                           : sentences(now, then);
  add_old_names(json, {{"current", "present"}, {"simulated", "what_if"}, {"explanation", "sentences"}});
  return json_response(200, json);
}

}  // namespace carpool::proxy::admin
