// Unit tests of the exchange's tables, which are proven at compile time: prints them and compares them with
// docs/states.
#include "proxy/exchange/transition_table.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "proxy/exchange/deadline_table.h"
#include "proxy/exchange/tunnel.h"
#include "proxy/upstream/retry_policy.h"

namespace carpool::proxy {
namespace {

constexpr std::array<std::string_view, 11> kEventNames{"collect", "authorize", "begin",         "answered",
                                                       "lease",   "retry",     "response_head", "switched",
                                                       "ended",   "broken",    "client_gone"};

constexpr std::array<std::string_view, 17> kDeadlineNames{"request.timeout",
                                                          "a body too large to be collected may have begun to stream",
                                                          "listen.body_min_rate",
                                                          "listen.body_min_rate of a streamed body",
                                                          "oauth2.timeout",
                                                          "pool.wait_timeout",
                                                          "pool.wait_timeout while a dial is in progress",
                                                          "request.idle_timeout, the client is silent",
                                                          "request.idle_timeout, the client waits for 100 (Continue)",
                                                          "request.idle_timeout, the origin reads nothing",
                                                          "request.response_header_timeout",
                                                          "request.per_try_timeout",
                                                          "request.idle_timeout, the origin is silent",
                                                          "request.idle_timeout, both sides are silent",
                                                          "request.idle_timeout, the client reads no response",
                                                          "listen.body_min_rate, the client reads slowly",
                                                          "request.idle_timeout of a stream that may be silent"};
constexpr std::array<std::string_view, 9> kActionNames{
    "the body is streamed",
    "the dial's own deadline holds",
    "continues",
    "is sent again where that is allowed, else fails",
    "fails, counted as given up",
    "fails likewise if a request waits for its connection",
    "ends as if the client had disconnected, counted as given up, if "
    "a request waits for its connection",
    "fails",
    "ends as if the client had disconnected"};
constexpr std::array<std::string_view, kExchangeStates> kExchangeStateNames{
    "idle", "collecting", "authorizing", "borrowing", "forwarding", "relaying", "tunnel"};
constexpr std::array<std::string_view, 3> kSideNames{"client", "upstream", "self"};
constexpr std::array<std::string_view, kAttemptResults> kResultNames{
    "no byte of it was sent",
    "the origin sent GOAWAY without reading it",
    "the origin refused the stream",
    "the origin answered 421",
    "the origin answered 401 to a token that it granted",
    "a connection that was idle ended without a response byte",
    "a connection dialed for it ended without a response byte",
    "a response byte arrived",
    "the origin violated the protocol",
    "the response has a status of request.retry_on",
    "a connection or stream ended, request.retry_on: reset",
    "no connection, request.retry_on: connect-failure",
    "request.per_try_timeout passed"};
constexpr std::array<std::string_view, kFlowStates> kFlowNames{"shut", "open", "ending", "refused", "ended"};
constexpr std::array<std::string_view, kFlowEvents> kFlowEventNames{
    "the tunnel opens", "bytes", "FIN of the sender", "the receiver's queue is empty", "the receiver reads no more"};

template <class Names, class Value>
std::string_view name_in(const Names& names, Value value) {
  return names.at(static_cast<std::size_t>(value));
}

std::string row_of_cells(std::initializer_list<std::string_view> cells) {
  std::string row = "|";
  for (const std::string_view cell : cells) row.append(" ").append(cell).append(" |");
  return row.append("\n");
}

std::string diagram() {
  std::string text = "```mermaid\nstateDiagram-v2\n";
  for (const ExchangeRow& row : kExchangeTable) {
    text.append("  ").append(name_in(kExchangeStateNames, row.from)).append(" --> ");
    text.append(name_in(kExchangeStateNames, row.to)).append(": ");
    text.append(name_in(kEventNames, row.event)).append("\n");
  }
  return text.append("```\n");
}

std::string deadlines() {
  std::string text = row_of_cells({"state", "deadline", "the request", "side at fault"}).append("|---|---|---|---|\n");
  for (const DeadlineRow& row : kDeadlineTable) {
    const bool fails = row.kind != FaultKind::internal;
    text.append(row_of_cells({name_in(kExchangeStateNames, row.state), name_in(kDeadlineNames, row.deadline),
                              name_in(kActionNames, row.action), fails ? name_in(kSideNames, row.side) : ""}));
  }
  return text;
}

std::string retries() {
  std::string text = row_of_cells({"after an attempt", "idempotent, no body", "body whole", "body partial"});
  text.append("|---|---|---|---|\n");
  const auto reason = [](const std::optional<RetryReason>& found) { return found ? name(*found) : "no"; };
  for (std::size_t result = 0; result < kAttemptResults; ++result) {
    const auto& row = kRetryTable.at(result);
    text.append(row_of_cells({kResultNames.at(result), reason(row[0]), reason(row[1]), reason(row[2])}));
  }
  return text;
}

std::string flows() {
  std::string text = "```mermaid\nstateDiagram-v2\n";
  for (std::size_t from = 0; from < kFlowStates; ++from) {
    for (std::size_t event = 0; event < kFlowEvents; ++event) {
      const FlowState to = kFlowTable.at(from).at(event);
      if (to == FlowState::illegal) continue;
      text.append("  ").append(kFlowNames.at(from)).append(" --> ").append(name_in(kFlowNames, to));
      text.append(": ").append(kFlowEventNames.at(event)).append("\n");
    }
  }
  return text.append("```\n");
}

std::string page() {
  std::string text =
      "# States of an exchange\n\nThis page is generated from the tables in proxy/exchange/ and proxy/upstream/.\n\n";
  text.append(diagram());
  text.append(
      "\n## Deadlines\n\nThe earliest deadline of the state arms the exchange's timer (`deadline_table.h`).\n\n");
  text.append(deadlines());
  text.append(
      "\n## Retries\n\nThe table has the reason for which a request is sent again after its attempt failed "
      "(`retry_policy.h`).\n");
  text.append("`RetryState` bounds how often.\n\n").append(retries());
  text.append(
      "\n## Tunnels\n\nThe diagram shows one direction of a tunnel (`tunnel.h`). The tunnel ends when the origin has "
      "sent FIN and "
      "the\n");
  text.append("direction to the origin is `refused` or `ended`.\n\n").append(flows());
  return text;
}

TEST(ExchangeTable, IsWhatTheDocumentationShows) {
  const std::string path = CARPOOL_SOURCE_DIR "/docs/states/exchange.md";
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << page();  // NOLINT(concurrency-mt-unsafe)
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), page()) << "run with UPDATE_GOLDEN=1 to rewrite " << path;
}

TEST(ExchangeTable, NothingIsSentAgainOnceAResponseHeadWentOut) {
  for (const ExchangeRow& row : kExchangeTable) {
    if (row.event == ExchangeEvent::retry) {
      EXPECT_EQ(row.from, ExchangeState::forwarding);
    }
  }
}

}  // namespace
}  // namespace carpool::proxy
