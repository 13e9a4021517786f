#include "proxy/server/admin/handlers/history.h"

#include <cmath>
#include <string>

#include "proxy/server/admin/find_pool.h"
#include "proxy/server/admin/history.h"
#include "proxy/server/admin/json.h"
#include "proxy/server/admin/path.h"

namespace carpool::proxy::admin {
namespace {

// Rounds to six digits after the decimal point, because most digits of a float are noise.
Json rounded(float value) {
  return value < 0 ? Json(nullptr) : Json(std::round(static_cast<double>(value) * 1e6) / 1e6);
}

Json series_of(const History::Past& past) {
  Json ago = Json::array(), requests = Json::array(), failed = Json::array(), p50 = Json::array(), p99 = Json::array(),
       waiting = Json::array(), busy = Json::array(), open = Json::array();
  const double every = seconds(History::kEvery);
  double age = std::round(seconds(past.age) * 1e3) / 1e3 + every * static_cast<double>(past.points.size());
  for (const History::Point& point : past.points) {
    ago.push_back(age -= every);
    requests.push_back(rounded(point.requests));
    failed.push_back(rounded(point.failed));
    p50.push_back(rounded(point.p50));
    p99.push_back(rounded(point.p99));
    waiting.push_back(point.waiting);
    busy.push_back(point.busy);
    open.push_back(point.open);
  }
  return {{"ago_seconds", std::move(ago)},
          {"requests_per_second", std::move(requests)},
          {"failed_per_second", std::move(failed)},
          {"p50_seconds", std::move(p50)},
          {"p99_seconds", std::move(p99)},
          {"waiting", std::move(waiting)},
          {"busy", std::move(busy)},
          {"open", std::move(open)}};
}

}  // namespace

// Returns empty lists for an origin that has no points yet.
Response history_response(const Call& call) {
  const History* const history = call.view.history();
  std::string origin = query_value(call.request.target, "origin").value_or(std::string());
  if (!origin.empty()) {
    const Result<pool::Origin> parsed = pool::parse_origin(origin);
    if (!parsed) return error_response(400, "not an origin: " + parsed.fault().detail);
    origin = parsed->label();
  }
  std::optional<History::Past> past;
  if (history != nullptr) past = history->of(origin, Clock::now());
  if (!past && !origin.empty() && !find_pool(call.view, origin)) return error_response(404, "no pool of " + origin);
  Json response{{"origin", or_null(origin)}, {"every_seconds", seconds(History::kEvery)}};
  response.update(series_of(past.value_or(History::Past{})));
  return json_response(200, response);
}

}  // namespace carpool::proxy::admin
