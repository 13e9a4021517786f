#include "proxy/server/admin/handlers/reload.h"

#include "proxy/server/admin/json.h"
#include "proxy/server/admin/path.h"

namespace carpool::proxy::admin {
namespace {

using Outcome = ReloadReport::Outcome;

std::string_view status_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::applied:
      return "reloaded";
    case Outcome::dry_run:
      return "dry run";
    case Outcome::refused:
      return "refused";
    case Outcome::busy:
      return "busy";
    case Outcome::unchanged:
      break;
  }
  return "unchanged";
}

Json changes_of(const ReloadReport& report) {
  Json changes = Json::array();
  for (const ReloadReport::Change& change : report.changes) {
    changes.push_back({{"key", change.key},
                       {"from", or_null(change.from)},
                       {"to", or_null(change.to)},
                       {"applies", change.live ? "now" : "restart"}});
  }
  return changes;
}

}  // namespace

Response reload_route(const Call& call) {
  const std::string dry = query_value(call.request.target, "dry_run").value_or("0");
  if (dry != "0" && dry != "1") return error_response(400, "dry_run must be 0 or 1");
  Response response;
  response.later = call.control.reload(dry == "1");
  return response;
}

Response reload_response(const ReloadReport& report) {
  if (report.outcome == Outcome::busy) return error_response(409, report.errors.front());
  if (report.outcome == Outcome::refused) {
    return problem_response(400, "reload refused: " + report.errors.front(), {{"mistakes", report.errors}});
  }
  return json_response(200, {{"status", status_of(report.outcome)},
                             {"changes", changes_of(report)},
                             {"renewed", report.renewed},
                             {"warnings", report.warnings}});
}

}  // namespace carpool::proxy::admin
