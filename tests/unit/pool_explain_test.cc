// Unit tests of explain(): what its sentences say about the causes, and what they must not claim.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "pool/directory/explain.h"

namespace carpool::pool {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

bool says(const std::vector<std::string>& lines, const std::string& text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const auto& line) { return line.find(text) != std::string::npos; });
}

TEST(AnExplanation, NamesTheCausesTheirNumbersAndTheConsequence) {
  Destination::Snapshot s;
  s.opened[static_cast<std::size_t>(OpenCause::stale_found)] = 212;
  s.opened[static_cast<std::size_t>(OpenCause::all_busy)] = 28;
  s.closed[static_cast<std::size_t>(CloseCause::peer_closed)] = 236;
  s.connections[static_cast<std::size_t>(ConnectionStatus::idle)] = 4;
  s.failures[static_cast<std::size_t>(FailureReason::refused)] = 1;
  s.borrows = 480;
  s.created = 240;
  s.size = s.peak = 8;
  s.learned_idle = seconds(5);
  s.effective_limit = milliseconds(4500);
  const std::vector<std::string> lines = explain(s, {seconds(60), std::chrono::minutes(30), 0, 0});
  EXPECT_TRUE(lines[0].starts_with("212 of 240 connections were opened because")) << lines[0];
  EXPECT_TRUE(says(lines, "closed by the origin, which is now believed to close idle connections after 5.0 s"));
  EXPECT_TRUE(says(lines,
                   "28 of 240 connections were opened because every open one that could serve the request was borrowed "
                   "at that moment (cause all_busy)."));
  EXPECT_TRUE(says(lines, "236 of 236 connections were closed: they were closed by the origin"));
  EXPECT_TRUE(says(lines, "480 borrows on 240 connections: each served 2.0 on average."));
  EXPECT_TRUE(says(lines, "retired after 4.5 s"));
  EXPECT_TRUE(says(lines, "1 dial or exchange failed (reason refused)"));
  EXPECT_FALSE(says(lines, "had to wait")) << "it has reached its size, and that was enough";
  s.waited_at_size = 3;
  EXPECT_TRUE(
      says(explain(s, {}), "3 requests found the pool at its size and had to wait; `carpool advice ORIGIN` gives"));
  ExplainSettings maximize;
  maximize.maximize = true;
  EXPECT_TRUE(says(explain(s, maximize), "at that moment, or for a later one, because of pool.maximize (cause"));
}

TEST(AnExplanation, NamesNoTimeThatIsShorterThanItCanBeWritten) {
  Destination::Snapshot s;
  s.opened[0] = 1;
  s.trust = milliseconds(1);
  EXPECT_TRUE(says(explain(s, {}), "uses no connection that was idle for longer than 1 ms."));
  s.trust = std::chrono::microseconds(900);
  EXPECT_TRUE(says(explain(s, {}), "closed a connection soon after its use: a request that must not be repeated gets"));
}

TEST(AnExplanation, SpeaksOfOneAsOneAndOfSeveralAsSeveral) {
  Destination::Snapshot s;
  s.opened[static_cast<std::size_t>(OpenCause::warm_up)] = s.closed[static_cast<std::size_t>(CloseCause::error)] = 1;
  s.opened[static_cast<std::size_t>(OpenCause::tunnel)] = s.closed[static_cast<std::size_t>(CloseCause::expired)] = 2;
  s.connections[static_cast<std::size_t>(ConnectionStatus::idle)] = s.created = 1;
  s.borrows = 5;
  const std::vector<std::string> lines = explain(s, {});
  EXPECT_TRUE(says(lines, "1 of 3 connections was opened because a warm-up requested it (cause warm_up)."));
  EXPECT_TRUE(says(lines, "2 of 3 connections were opened because tunnels (CONNECT) take one each (cause tunnel)."));
  EXPECT_TRUE(says(lines, "1 of 3 connections was closed: it failed: its dial, or an exchange on it (cause error)."));
  EXPECT_TRUE(says(lines, "2 of 3 connections were closed: they had reached their maximum age"));
  EXPECT_TRUE(says(lines, "5 borrows on 1 connection."));
  EXPECT_TRUE(says(lines, "Now 1 of at most 0 is open (1 idle)"));
}

TEST(AnExplanation, HasAReasonForEachCause) {
  for (std::size_t i = 0; i < kOpenCauseNames.size(); ++i) {
    Destination::Snapshot s;
    s.opened[i] = 1;
    EXPECT_TRUE(says(explain(s, {}), "1 of 1 connection was opened because ")) << kOpenCauseNames[i];
    EXPECT_FALSE(says(explain(s, {}), "because  (cause")) << kOpenCauseNames[i];
  }
  for (std::size_t i = 0; i < kCloseCauseNames.size(); ++i) {
    Destination::Snapshot s;
    s.opened[0] = s.closed[i] = 1;
    EXPECT_TRUE(says(explain(s, {}), "1 of 1 connection was closed: it ")) << kCloseCauseNames[i];
    EXPECT_FALSE(says(explain(s, {}), "it  (cause")) << kCloseCauseNames[i];
  }
  EXPECT_TRUE(says(explain({}, {}), "there was no request"));
}

// The limits in force need not be those of earlier closes.
TEST(AnExplanation, ClaimsNoLimitThatMayHaveChanged) {
  Destination::Snapshot s;
  s.opened[0] = s.closed[static_cast<std::size_t>(CloseCause::idle)] = 2;
  const ExplainSettings settings{seconds(60), std::chrono::minutes(30), 0, 0};
  const std::string text =
      "they had been idle for idle_timeout (now 60.0 s), or for nearly as long as the origin was believed to keep them "
      "(cause idle).";
  EXPECT_TRUE(says(explain(s, settings), text));
  s.learned_idle = milliseconds(37);
  s.effective_limit = milliseconds(900);
  EXPECT_TRUE(says(explain(s, settings), text));
  EXPECT_TRUE(says(explain(s, settings), "idle for 37 ms: shorter than a second, so carpool does not close"));
}

// A reload may have changed each of these since a connection was opened or closed.
TEST(AnExplanation, CallsEachLimitTheOneOfNow) {
  Destination::Snapshot s;
  for (std::uint64_t& count : s.opened) count = 1;
  for (std::uint64_t& count : s.closed) count = 1;
  s.learned_idle = seconds(5);
  s.effective_limit = milliseconds(4500);
  const std::vector<std::string> lines = explain(s, {seconds(60), seconds(90), 7, false, 3});
  for (const char* const text :
       {"one had been idle for too long or was closed by the origin, which is now believed to close idle connections "
        "after 5.0 s (cause stale_found).",
        "one had reached its maximum age, expire_time (now 90.0 s) (cause expired).",
        "one had served as many requests as max_usage (now 7) allowed (cause max_usage).",
        "fewer than min_idle (now 3) were idle", "it had reached its maximum age, expire_time (now 90.0 s)",
        "it had served as many requests as max_usage (now 7) allowed",
        "it was closed by pool.reuse = \"never\" (now not in",
        "or pool.reuse = \"never\" (now not in force) gives each a new one"}) {
    EXPECT_TRUE(says(lines, text)) << text;
  }
  ExplainSettings none;
  none.single_use = true;
  EXPECT_TRUE(says(explain(s, none), "its maximum age, expire_time (now none)"));
  EXPECT_TRUE(says(explain(s, none), "pool.reuse = \"never\" (now in force)"));
}

TEST(AnExplanation, SaysSinceWhenItCountsAndWhat) {
  Destination::Snapshot s;
  s.opened[0] = 3;
  s.created = 1;
  s.age = std::chrono::hours(5);
  EXPECT_EQ(explain(s, {})[0],
            "Counted since the pool began, 5.0 h ago: 3 connections were dialed, and 1 dial has succeeded.");
  s.opened[0] = 1;
  s.created = 0;
  s.age = seconds(12);
  EXPECT_EQ(explain(s, {})[0],
            "Counted since the pool began, 12.0 s ago: 1 connection was dialed, and 0 dials have succeeded.");
  s.age = std::chrono::minutes(40);
  EXPECT_TRUE(says(explain(s, {}), "began, 40 min ago"));
  s.age = std::chrono::hours(60);
  EXPECT_TRUE(says(explain(s, {}), "began, 2.5 days ago"));
}

// A pool exists because a request came, so that explain() cannot claim that there was none.
TEST(AnExplanation, SaysThatThereWasNoRequestOnlyWithoutAPool) {
  Destination::Snapshot s;
  s.age = seconds(3);
  EXPECT_EQ(explain(s, {}), std::vector<std::string>{"No connection has been opened yet."});
}

TEST(AnExplanation, SaysWhatTheWaitingRequestsWaitFor) {
  Destination::Snapshot s;
  s.size = 2;
  s.waiting = 3;
  s.max_wait = milliseconds(40);
  s.starved = true;
  const std::string begin = "3 requests wait for a connection, the longest for 40 ms";
  const std::string total = begin + ": the other origins have all connections of pool.total.max_connections.";
  EXPECT_TRUE(says(explain(s, {}), total)) << "none is open yet";
  EXPECT_FALSE(says(explain(s, {}), "there was no request"));
  s.opened[0] = s.connections[static_cast<std::size_t>(ConnectionStatus::borrowed)] = 1;
  EXPECT_TRUE(says(explain(s, {}), total));
  s.starved = false;
  EXPECT_TRUE(says(explain(s, {}), begin + "."));
  s.waiting_for_place = 3;
  EXPECT_TRUE(says(explain(s, {}), begin + ": every place for tunnels is taken (max_tunnels)."));
  s.waiting_for_place = 1;
  s.connections[static_cast<std::size_t>(ConnectionStatus::borrowed)] = 2;
  EXPECT_TRUE(says(explain(s, {}), begin + ": the pool is at its size."));
  s.paused = Destination::Snapshot::Paused{};
  EXPECT_TRUE(says(explain(s, {}), begin + "."));
}

TEST(AnExplanation, NamesTheCommandThatShowsMore) {
  Destination::Snapshot s;
  s.opened[0] = s.closed[static_cast<std::size_t>(CloseCause::unhealthy)] = s.leaks = 1;
  EXPECT_TRUE(says(explain(s, {}), "it failed a health check, or its address was ejected (cause unhealthy)."));
  EXPECT_TRUE(says(explain(s, {}), "1 lease was lost, or held for longer than leak_timeout: see `carpool leaks`."));
}

}  // namespace
}  // namespace carpool::pool
