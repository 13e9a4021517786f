// The exchange's table is proven at compile time; this prints it for the reader and keeps docs/states in step.
#include "proxy/exchange/transition_table.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace carpool::proxy {
namespace {

constexpr std::array<std::string_view, 10> kEventNames{
    "collect", "begin", "answered", "lease", "retry", "response_head", "switched", "ended", "broken", "client_gone"};

std::string diagram() {
  std::string text =
      "# States of an exchange\n\nGenerated from proxy/exchange/transition_table.h.\n\n```mermaid\nstateDiagram-v2\n";
  for (const ExchangeRow& row : kExchangeTable) {
    text.append("  ").append(kExchangeStateNames[static_cast<std::size_t>(row.from)]).append(" --> ");
    text.append(kExchangeStateNames[static_cast<std::size_t>(row.to)]).append(": ");
    text.append(kEventNames[static_cast<std::size_t>(row.event)]).append("\n");
  }
  return text.append("```\n");
}

TEST(ExchangeTable, IsWhatTheDocumentationShows) {
  const std::string path = CARPOOL_SOURCE_DIR "/docs/states/exchange.md";
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << diagram();  // NOLINT(concurrency-mt-unsafe)
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), diagram()) << "run with UPDATE_GOLDEN=1 to rewrite " << path;
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
