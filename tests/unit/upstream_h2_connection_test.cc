// Unit tests of sessions to origins on wires in memory: the simulation's findings, step by step.
#include <gtest/gtest.h>

#include "proxy/upstream/origin/tls_identity.h"
#include "tests/sim/session_borrower.h"
#include "tests/unit/heap_in_use.h"

namespace carpool::test {
namespace {

// One loop, one session, one borrower.
class ASession : public ::testing::Test {
 protected:
  ASession() {
    pool::Limits limits;
    limits.size = 1;
    limits.expected_streams = 100;
    pool::Origin origin;
    origin.host = "origin.test";
    origin.port = 80;
    world_.destination = *directory_.at(origin, limits);
    world_.context.destination = world_.destination;
  }
  ~ASession() override {
    go_on();
    directory_.stop(world_.now);
    go_on();
  }
  // Runs until nothing more happens, without advancing time.
  void go_on() {
    for (int rounds = 0; rounds < 1000; ++rounds) {
      world_.turn(0, true);
      asker_.act(true);
      for (Link& link : world_.links) {
        world_.land(link, SIZE_MAX);
        link.origin.act(world_.now, true);
      }
    }
    EXPECT_EQ(world_.planned.wrong, "");
  }
  // The same without the origin's responses.
  void travel() {
    for (int rounds = 0; rounds < 100; ++rounds) {
      world_.turn(0, true);
      asker_.act(true);
      for (Link& link : world_.links) world_.land(link, SIZE_MAX);
    }
  }
  void ask() { asker_.begin(++asked_); }
  SimOrigin& origin() { return world_.links.front().origin; }
  std::uint64_t closed_for(pool::CloseCause cause) {
    return world_.destination->snapshot(world_.now).closed[static_cast<std::size_t>(cause)];
  }
  bool answered() {
    const PlannedResponse& planned_one = world_.planned.all[asked_];
    return planned_one.ends == 1 && !planned_one.responses.empty() && planned_one.responses.back().whole;
  }
  Random random_{1};
  SessionWorld world_{random_, 2};
  pool::Directory directory_{pool::DirectoryLimits{}, world_, 2};
  SessionBorrower asker_{world_, random_, 0};
  std::uint64_t asked_ = 0;
};

constexpr Duration kLongRest = std::chrono::seconds(6);

TEST_F(ASession, ThatFailsItsLivenessCheckPassesItsRequestToAnother) {
  ask();
  go_on();
  ASSERT_TRUE(answered());
  world_.now += kLongRest;
  world_.links.front().origin.cut();
  ask();
  go_on();
  EXPECT_TRUE(answered());
  EXPECT_EQ(world_.destination->snapshot(world_.now).created, 2U);
}

TEST_F(ASession, AsksForASignOfLifeAsSoonAsTheSocketTakesIt) {
  ask();
  go_on();
  ASSERT_TRUE(answered());
  world_.now += kLongRest;
  Wire& wire = world_.links.front().wire;
  wire.room = 0;
  ask();
  go_on();
  EXPECT_FALSE(answered());
  wire.room = 1000;
  go_on();
  EXPECT_TRUE(answered());
  EXPECT_EQ(world_.destination->snapshot(world_.now).created, 1U);
}

// An origin without keep-alive is never trusted, not even in the turn of its last byte. The session asserts that
// nothing is sent while it receives.
TEST_F(ASession, TakesARequestFromWithinTheEndOfAResponse) {
  ask();
  go_on();
  ASSERT_TRUE(answered());
  world_.destination->hint_keep_alive(Duration::zero());
  ASSERT_LE(world_.destination->trust(), Duration::zero());
  ask();
  asker_.begin_at_end(++asked_);
  go_on();
  EXPECT_TRUE(answered());
  EXPECT_EQ(world_.destination->snapshot(world_.now).created, 1U);
}

// The same from another loop than the session's.
class ASessionOfAnotherLoop : public ASession {
 protected:
  void travel_from_afar(SessionBorrower& borrower) {
    for (int rounds = 0; rounds < 100; ++rounds) {
      world_.turn(0, true);
      world_.turn(1, true);
      borrower.act(true);
      for (Link& link : world_.links) world_.land(link, SIZE_MAX);
    }
  }
};

TEST_F(ASessionOfAnotherLoop, PassesTheEndOfEachRequestOn) {
  ask();
  go_on();
  ASSERT_TRUE(answered());
  SessionBorrower borrower{world_, random_, 1};
  for (std::uint64_t bodies = 0; bodies < 3;) {
    world_.on(1);
    borrower.begin(++asked_);
    travel_from_afar(borrower);
    const PlannedResponse& planned_one = world_.planned.all[asked_];
    if (planned_one.upload < 10'000) {
      bodies += planned_one.upload != 0 ? 1 : 0;
      EXPECT_TRUE(planned_one.asked_whole) << "request " << asked_ << " of " << planned_one.upload << " bytes";
    }
    for (int rounds = 0; rounds < 1000 && planned_one.ends == 0; ++rounds) {
      world_.links.front().origin.act(world_.now, true);
      travel_from_afar(borrower);
    }
    ASSERT_EQ(planned_one.ends, 1U);
  }
  EXPECT_EQ(world_.destination->snapshot(world_.now).created, 1U);
}

TEST_F(ASessionOfAnotherLoop, LeavesNoLargeHeadAndTrailersInMemory) {
  // A request from each loop, and the end of their session.
  const auto ask_twice = [&](std::size_t near, std::size_t far) {
    SessionBorrower remote{world_, random_, 1};
    asker_.padding.assign(near, 'x');
    remote.padding.assign(far, 'x');
    for (SessionBorrower* one : {&asker_, &remote}) {
      world_.on(one->loop());
      one->begin(++asked_);
      for (int rounds = 0; rounds < 1000 && world_.planned.all[asked_].ends == 0; ++rounds) {
        travel_from_afar(*one);
        for (Link& link : world_.links) link.origin.act(world_.now, true);
      }
      ASSERT_EQ(world_.planned.all[asked_].ends, 1U);
    }
    for (Link& link : world_.links) link.origin.cut();
    travel_from_afar(remote);
    ASSERT_TRUE(world_.links.empty());
  };
  constexpr std::size_t kLarge = 30'000;
  ask_twice(kLarge, 1);
  const std::int64_t before = heap_in_use();
  ask_twice(kLarge, kLarge);
  EXPECT_LT(heap_in_use() - before, 8192);
}

// The request is on its way to the session's loop when the certificates change.
TEST_F(ASessionOfAnotherLoop, SendsNoRequestOnceItsCertificatesAreReplaced) {
  proxy::tls::ClientSettings settings;
  settings.verify = false;
  proxy::TlsIdentity identity(settings);
  ASSERT_TRUE(identity.load());
  const auto finish = [&](SessionBorrower& borrower) {
    for (int rounds = 0; rounds < 1000 && world_.planned.all[asked_].ends == 0; ++rounds) {
      travel_from_afar(borrower);
      for (Link& link : world_.links) link.origin.act(world_.now, true);
    }
    travel_from_afar(borrower);
    EXPECT_EQ(world_.planned.all[asked_].ends, 1U);
  };
  SessionBorrower other{world_, random_, 1};
  world_.on(1);
  other.begin(++asked_);
  finish(other);
  Link& first = world_.links.front();
  ASSERT_NE(first.connection, nullptr);
  first.connection->made_under(identity, identity.in_force());
  ask();
  settings.alpn = {"h2"};
  auto renewed = proxy::tls::ClientContext::make(settings);
  ASSERT_TRUE(renewed);
  identity.replace(std::move(*renewed));
  world_.on(1);
  world_.destination->retire(first.index, first.generation, pool::CloseCause::config_changed, world_.now);
  finish(asker_);
  EXPECT_EQ(closed_for(pool::CloseCause::config_changed), 1U);
  EXPECT_EQ(world_.destination->snapshot(world_.now).created, 2U);
}

TEST_F(ASession, EndsWhenAPingIsNotAnswered) {
  ask();
  travel();
  world_.now += kLongRest;
  world_.turn(0, true);
  world_.now += kLongRest;
  world_.turn(0, true);
  EXPECT_EQ(closed_for(pool::CloseCause::unhealthy), 1U);
}

// The response is in the socket, and its event has not arrived, when a PING cannot be written.
TEST_F(ASession, ThatCannotWriteStillPassesOnWhatItsOriginSent) {
  ask();
  travel();
  origin().respond_early(world_.now);
  Link& link = world_.links.front();
  world_.land(link, SIZE_MAX);
  link.wire.ready = false;
  link.wire.write_closed = true;
  world_.now += kLongRest;
  world_.turn(0, true);
  EXPECT_TRUE(answered());
  EXPECT_EQ(world_.planned.all[asked_].responses.size(), 1U);
  EXPECT_EQ(closed_for(pool::CloseCause::error), 1U);
}

TEST_F(ASession, TakesNoRequestAfterAGoaway) {
  ask();
  travel();
  origin().go_away(world_.now);
  go_on();
  EXPECT_EQ(closed_for(pool::CloseCause::goaway), 1U);
  EXPECT_TRUE(answered());
}

// The rest of the request waits for a window that the origin never opens.
TEST_F(ASession, ClosesAStreamThatWasAnsweredBeforeItsRequestWasSent) {
  const auto waits = [this] {
    const PlannedResponse& planned_one = world_.planned.all[asked_];
    return planned_one.said == planned_one.upload && !planned_one.asked_whole;
  };
  for (ask(), travel(); !waits() && asked_ < 1000; ask(), travel()) go_on();
  ASSERT_TRUE(waits());
  origin().respond_early(world_.now);
  travel();
  EXPECT_TRUE(answered());
  EXPECT_EQ(origin().open_streams(), 0U);
}

TEST_F(ASession, PassesARequestOnThatItsOriginRefuses) {
  ask();
  travel();
  origin().refuse(world_.now);
  go_on();
  EXPECT_TRUE(answered());
}

// The origin lowers its limit while the second request is begun, and works on the first for longer.
TEST_F(ASession, PassesARequestOnThatItsOriginAllowsNoMore) {
  SessionBorrower other{world_, random_, 0};
  ask();
  travel();
  origin().act(world_.now, true);
  origin().allow_streams(1, world_.now);
  world_.land(world_.links.front(), SIZE_MAX);
  world_.on(0);
  other.begin(++asked_);
  ASSERT_EQ(other.state(), SessionBorrower::State::forwarding);
  travel();
  EXPECT_EQ(other.state(), SessionBorrower::State::borrowing);
  for (int rounds = 0; rounds < 1000 && other.state() != SessionBorrower::State::idle; ++rounds) {
    go_on();
    other.act(true);
  }
  EXPECT_TRUE(answered());
}

TEST_F(ASession, PassesARequestOnThatWaitsForAPingWhenItsOriginAllowsNoStream) {
  ask();
  go_on();
  ASSERT_TRUE(answered());
  world_.now += kLongRest;
  ask();
  world_.turn(0, true);
  origin().allow_streams(0, world_.now);
  go_on();
  EXPECT_TRUE(answered());
  EXPECT_EQ(world_.destination->snapshot(world_.now).created, 2U);
}

// It is granted a stream of a session on another loop; the origin takes the stream back before it arrives there.
TEST_F(ASessionOfAnotherLoop, PassesARequestOnThatArrivesWhenItsOriginAllowsNoMore) {
  ask();
  travel();
  SessionBorrower far{world_, random_, 1};
  world_.on(1);
  far.begin(++asked_);
  ASSERT_EQ(far.state(), SessionBorrower::State::forwarding);
  origin().allow_streams(1, world_.now);
  world_.land(world_.links.front(), SIZE_MAX);
  travel_from_afar(far);
  EXPECT_EQ(far.state(), SessionBorrower::State::borrowing);
  for (int rounds = 0; rounds < 1000 && world_.planned.all[asked_].ends == 0; ++rounds) {
    asker_.act(true);
    for (Link& link : world_.links) link.origin.act(world_.now, true);
    travel_from_afar(far);
  }
  EXPECT_TRUE(answered());
}

TEST_F(ASession, PassesARequestOnThatWaitsForAPingWhenAGoawayComes) {
  ask();
  go_on();
  ASSERT_TRUE(answered());
  world_.now += kLongRest;
  ask();
  world_.turn(0, true);
  origin().go_away(world_.now);
  go_on();
  EXPECT_TRUE(answered());
  EXPECT_EQ(world_.destination->snapshot(world_.now).created, 2U);
}

}  // namespace
}  // namespace carpool::test
