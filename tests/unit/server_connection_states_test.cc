// Unit tests of the tables of connections and of a dial: prints them and compares them with docs/states.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "proxy/downstream/h1_client_state.h"
#include "proxy/server/admin/h2_connection_state.h"
#include "proxy/upstream/dial_state.h"

namespace carpool::proxy {
namespace {

constexpr std::array<std::string_view, kH1ClientStates> kClientNames{"open",      "closing", "truncated",  "lingering",
                                                                     "resetting", "closed",  "handed_over"};
constexpr std::array<std::string_view, kH1RequestStates> kRequestNames{"none", "head",     "body_at_hand",
                                                                       "body", "complete", "unread"};
constexpr std::array<std::string_view, kDialStates> kDialNames{"created",   "rate_limited", "loading",  "stopping",
                                                               "failing",   "dialing",      "settings", "settings_ack",
                                                               "no_stream", "orphaned",     "over"};
constexpr std::array<std::string_view, kAdminH2States> kAdminNames{"open", "to_leave", "leaving", "lingering",
                                                                   "closed"};

template <class State, std::size_t kStates>
std::string diagram(const Transitions<State, kStates>& table, const std::array<std::string_view, kStates>& names) {
  std::string text = "```mermaid\nstateDiagram-v2\n";
  for (std::size_t from = 0; from < kStates; ++from) {
    for (std::size_t to = 0; to < kStates; ++to) {
      if (!table.allows(static_cast<State>(from), static_cast<State>(to))) continue;
      text.append("  ").append(names.at(from)).append(" --> ").append(names.at(to)).append("\n");
    }
  }
  return text.append("```\n");
}

std::string page() {
  std::string text = "# States of connections\n\n";
  text.append("This page is generated from the tables in proxy/downstream/, proxy/upstream/ and proxy/server/.\n\n");
  text.append("## Connections of HTTP/1.1 clients\n\n`h1_client_state.h` describes the states.\n\n");
  text.append(diagram(kH1ClientTransitions, kClientNames));
  text.append(
      "\n## Requests of HTTP/1.1 clients\n\nThe diagram shows what a client has read of its current request.\n\n");
  text.append(diagram(kH1RequestTransitions, kRequestNames));
  text.append("\n## Dials\n\n`dial_state.h` describes the states.\n\n");
  text.append(diagram(kDialTransitions, kDialNames));
  text.append("\n## HTTP/2 connections to the admin endpoint\n\n`h2_connection_state.h` describes the states.\n\n");
  return text.append(diagram(kAdminH2Transitions, kAdminNames));
}

TEST(ConnectionStates, AreWhatTheDocumentationShows) {
  const std::string path = CARPOOL_SOURCE_DIR "/docs/states/connections.md";
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << page();  // NOLINT(concurrency-mt-unsafe)
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), page()) << "run with UPDATE_GOLDEN=1 to rewrite " << path;
}

TEST(StatesOfAClient, ReadNoRequestAfterTheLastResponse) {
  for (std::size_t i = 0; i < kH1ClientStates; ++i) {
    EXPECT_FALSE(kH1ClientTransitions.allows(static_cast<H1ClientState>(i), H1ClientState::open)) << kClientNames.at(i);
  }
}

TEST(StatesOfAClient, EndATruncatedResponseWithoutFin) {
  EXPECT_FALSE(kH1ClientTransitions.allows(H1ClientState::truncated, H1ClientState::lingering));
  EXPECT_TRUE(kH1ClientTransitions.allows(H1ClientState::truncated, H1ClientState::resetting));
}

TEST(StatesOfARequest, BeginWithTheHeadAndEndBeforeTheNextOne) {
  for (std::size_t i = 0; i < kH1RequestStates; ++i) {
    const auto state = static_cast<H1RequestState>(i);
    EXPECT_EQ(kH1RequestTransitions.allows(state, H1RequestState::head), state == H1RequestState::none);
  }
  EXPECT_FALSE(kH1RequestTransitions.allows(H1RequestState::head, H1RequestState::complete));
}

TEST(StatesOfAnAdminConnection, SendGoawayOnlyToAClientThatIsToLeave) {
  for (std::size_t i = 0; i < kAdminH2States; ++i) {
    const auto state = static_cast<AdminH2State>(i);
    EXPECT_EQ(kAdminH2Transitions.allows(state, AdminH2State::leaving), state == AdminH2State::to_leave)
        << kAdminNames.at(i);
  }
}

TEST(StatesOfADial, AreOrphanedOnlyWithAMessage) {
  for (std::size_t i = 0; i < kDialStates; ++i) {
    const auto state = static_cast<DialState>(i);
    EXPECT_EQ(kDialTransitions.allows(state, DialState::orphaned), state == DialState::loading) << kDialNames.at(i);
  }
}

TEST(StatesOfADial, ReportAFaultInTheirTurnAlone) {
  EXPECT_TRUE(kDialTransitions.allows(DialState::failing, DialState::over));
  EXPECT_FALSE(kDialTransitions.allows(DialState::failing, DialState::dialing));
  EXPECT_FALSE(kDialTransitions.allows(DialState::created, DialState::over));
}

}  // namespace
}  // namespace carpool::proxy
