#include "proxy/server/admin/handlers/leaks.h"

#include <utility>

#include "proxy/server/admin/json_list.h"

namespace carpool::proxy::admin {

namespace {
Json json_of(const BorrowerInfo& borrower) {
  Json json;
  json["request"] = or_null(borrower.request);
  json["phase"] = or_null(borrower.phase);
  json["client"] = or_null(borrower.client);
  json["user"] = or_null(borrower.user);
  json["pid"] = or_null(borrower.pid);
  json["uid"] = or_null(borrower.uid);
  json["trace_id"] = or_null(borrower.trace_id);
  json["bytes_in"] = borrower.bytes_in;
  json["bytes_out"] = borrower.bytes_out;
  return json;
}

Json json_of(const LeakRecord& leak, Instant now) {
  const bool held = leak.kind == LeakKind::held;
  const bool over = leak.kind == LeakKind::lost || leak.returned_after;
  Json json;
  json["id"] = leak.id;
  json["kind"] = held ? "held" : leak.kind == LeakKind::lost ? "lost" : "untracked";
  json["origin"] = or_null(leak.origin);
  json["connection"] = leak.borrower.connection;
  json["found_seconds_ago"] = seconds(now - leak.found);
  json["age_seconds"] =
      seconds(leak.returned_after ? *leak.returned_after : leak.borrower.held + (over ? Duration{} : now - leak.found));
  json["returned"] = over;
  json["action"] = leak.action;
  json["borrower"] = json_of(leak.borrower);
  return json;
}
}  // namespace

std::string borrower_text(const BorrowerInfo& borrower) {
  std::string text = borrower.request;
  if (!borrower.client.empty()) text += " of " + borrower.client;
  if (!borrower.user.empty()) text += " as " + borrower.user;
  if (borrower.pid && borrower.uid) {
    text += " (pid " + std::to_string(*borrower.pid) + ", uid " + std::to_string(*borrower.uid) + ")";
  } else if (borrower.uid) {
    text += " (uid " + std::to_string(*borrower.uid) + ")";
  }
  if (!borrower.phase.empty()) text += ", " + borrower.phase;
  return text;
}

Response leaks_response(std::vector<LeakRecord> leaks, Instant now) {
  return list_response("leaks", std::move(leaks), [now](const LeakRecord& leak) { return json_of(leak, now); });
}

}  // namespace carpool::proxy::admin
