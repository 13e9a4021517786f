// Faults of a name server: it reports errors, answers for one family only, or sends too much.
#include <algorithm>
#include <utility>

#include "proxy/net/dns/known_names.h"
#include "tests/unit/net_dns_support.h"

namespace carpool::proxy::dns {
namespace {

using namespace std::chrono_literals;
using net::NameServer;

struct DnsOfAFaultyServer : Dns {
  // A query that the test holds ends after five seconds.
  Settings with_long_queries() const {
    Settings out = settings();
    out.resolv_conf = long_queries.path();
    return out;
  }
  net::TemporaryFile long_queries{"options timeout:5 attempts:1\nsearch svc.test\n"};
};

TEST_F(DnsOfAFaultyServer, DoesNotWaitForTheRestOfATruncatedResponseThatNeverArrives) {
  server.table["part.test"] = {{"127.0.0.1", "127.0.0.2", "127.0.0.3"}, 60, 0, {}};
  server.only_tcp = true;
  server.mute_tcp = NameServer::kAny;
  server.truncated_to = 2;
  const net::TemporaryFile patient("options timeout:5 attempts:2\n");
  Settings longer = settings();
  longer.resolv_conf = patient.path();
  Resolver resolver(*loop, longer);
  const Instant begin = Clock::now();
  const std::string found = resolve(resolver, "part.test");
  EXPECT_TRUE(found == "127.0.0.1 127.0.0.2" || found == "127.0.0.2 127.0.0.1") << found;
  EXPECT_LT(Clock::now() - begin, 4s);
}

TEST_F(DnsOfAFaultyServer, TakesADatagramThatIsLongerThanItMayBeAsTruncated) {
  NameServer::Record large{{}, 60, 0, {}};
  for (int i = 1; i <= 100; ++i) large.addresses.push_back("127.0.1." + std::to_string(i));
  server.table["large.test"] = large;
  Resolver resolver(*loop, settings());
  const auto found = resolve(resolver, "large.test");
  EXPECT_EQ(std::count(found.begin(), found.end(), ' '), 99) << found;
}

TEST_F(DnsOfAFaultyServer, GivesOneFamilyWhileTheOtherIsLateAndBothAfterwards) {
  exec::assume_on_loop();
  const net::TemporaryFile patient("options timeout:5 attempts:2\n");
  Settings longer = settings();
  longer.resolv_conf = patient.path();
  longer.min_ttl = longer.max_ttl = 1ms;
  server.table["half.test"] = {{"127.0.0.1", "::1"}, 60, 0, {}};
  for (const int late : {28, 1}) {
    Resolver resolver(*loop, longer);
    server.held_type = late;
    const Instant begin = Clock::now();
    EXPECT_EQ(resolve(resolver, "half.test"), late == 28 ? "127.0.0.1" : "::1");
    EXPECT_LT(Clock::now() - begin, 4s);
    Asked rest;
    resolver.await_rest("half.test", rest);
    EXPECT_TRUE(static_cast<ListHook<QuestionTag>&>(rest).linked());
    server.held_type = 0;
    server.release();
    ASSERT_TRUE(loop.until([&] { return rest.done(); }));
    EXPECT_NE(rest.text.find("127.0.0.1"), std::string::npos) << rest.text;
    EXPECT_NE(rest.text.find("::1"), std::string::npos) << rest.text;
    resolver.await_rest("half.test", rest);
    EXPECT_FALSE(static_cast<ListHook<QuestionTag>&>(rest).linked()) << "it was the whole result";
  }
}

TEST_F(DnsOfAFaultyServer, GivesAPartOfZeroTtlToEveryQuestionUntilTheRestArrives) {
  Settings uncached = with_long_queries();
  uncached.min_ttl = uncached.stale_for = Duration::zero();
  server.table["half.test"] = {{"127.0.0.1", "::1"}, 0, 0, {}};
  server.held_type = 28;
  Resolver resolver(*loop, uncached);
  const Instant begin = Clock::now();
  EXPECT_EQ(resolve(resolver, "half.test"), "127.0.0.1");
  EXPECT_EQ(resolve(resolver, "half.test"), "127.0.0.1");
  EXPECT_LT(Clock::now() - begin, 4s);
}

TEST_F(DnsOfAFaultyServer, GivesATruncatedPartWhileTheOtherFamilyIsLateAndAllAfterwards) {
  exec::assume_on_loop();
  server.only_tcp = true;
  server.truncated_to = 2;
  server.table["cut.test"] = {{"127.0.0.1", "127.0.0.2", "127.0.0.3", "::1"}, 60, 0, {}};
  server.held_type = 28;
  Resolver resolver(*loop, with_long_queries());
  const Instant begin = Clock::now();
  EXPECT_EQ(resolve(resolver, "cut.test"), "127.0.0.1 127.0.0.2");
  EXPECT_LT(Clock::now() - begin, 4s);
  Asked rest;
  resolver.await_rest("cut.test", rest);
  server.held_type = 0;
  server.release();
  ASSERT_TRUE(loop.until([&] { return rest.done(); }));
  EXPECT_EQ(std::count(rest.text.begin(), rest.text.end(), ' '), 3) << rest.text;
}

TEST_F(DnsOfAFaultyServer, ANameIsAbsentAlthoughAPartOfItsAddressesCameBefore) {
  exec::assume_on_loop();
  server.only_tcp = true;
  server.truncated_to = 1;
  server.table["left.test"] = {{"127.0.0.1", "127.0.0.2", "::1"}, 60, 0, {}};
  server.held_type = 28;
  Resolver resolver(*loop, with_long_queries());
  EXPECT_EQ(resolve(resolver, "left.test"), "127.0.0.1");
  server.table.erase("left.test");
  Asked rest;
  resolver.await_rest("left.test", rest);
  server.held_type = 0;
  server.release();
  ASSERT_TRUE(loop.until([&] { return rest.done(); }));
  EXPECT_EQ(rest.text, "fault");
  EXPECT_EQ(resolve(resolver, "left.test"), "fault");
}

TEST_F(DnsOfAFaultyServer, CompletesAPartWithTheCachedAddressesOfTheOtherFamily) {
  Settings brief = settings();
  brief.min_ttl = brief.max_ttl = 1ms;
  server.table["half.test"] = {{"127.0.0.1", "::1"}, 60, 0, {}};
  Resolver resolver(*loop, brief);
  EXPECT_NE(resolve(resolver, "half.test"), "fault");
  server.table["half.test"] = {{"127.0.0.2", "::2"}, 60, 0, {}};
  server.held_type = 28;
  loop.pass(5ms);
  EXPECT_EQ(resolve(resolver, "half.test"), "127.0.0.2 ::1");
}

TEST_F(DnsOfAFaultyServer, ReportsTheErrorOfANameServerAndRemembersItForASecond) {
  Resolver resolver(*loop, settings());
  for (const auto& [rcode, said] :
       {std::pair{2, "SERVFAIL"}, {4, "NOTIMP"}, {5, "REFUSED"}, {9, "reported an error"}}) {
    const std::string name = "code" + std::to_string(rcode) + ".test";
    server.table[name] = {{}, 60, rcode, {}};
    EXPECT_EQ(resolve(resolver, name), "fault");
    EXPECT_EQ(last->kind, FaultKind::dns_error);
    EXPECT_NE(last->detail.find(said), std::string::npos) << last->detail;
    const int asked = server.asked[name];
    EXPECT_LE(asked, 2) << "a server that responds is reachable";
    EXPECT_EQ(resolve(resolver, name), "fault");
    EXPECT_EQ(server.asked[name], asked);
  }
}

TEST_F(DnsOfAFaultyServer, AnErrorOfANameServerEndsNothingThatWasKnown) {
  server.table["known.test"] = {{"127.0.0.1"}, 0, 0, {}};
  Resolver resolver(*loop, settings());
  EXPECT_EQ(resolve(resolver, "known.test"), "127.0.0.1");
  server.table["known.test"] = {{}, 0, 9, {}};
  loop.pass(30ms);
  EXPECT_EQ(resolve(resolver, "known.test"), "127.0.0.1");
}

TEST_F(DnsOfAFaultyServer, AnErrorForOneFamilyIsNoEndOfTheNameThoughTheOtherOneIsEmpty) {
  exec::assume_on_loop();
  for (const auto& [fails, alias] : {std::pair{1, ""}, {28, ""}, {1, "other.test"}, {28, "other.test"}}) {
    server.fails_type = server.held_type = 0;
    server.table["known.test"] = {{fails == 1 ? "127.0.0.1" : "::1"}, 0, 0, {}};
    Resolver resolver(*loop, settings());
    const std::string known = resolve(resolver, "known.test");
    ASSERT_NE(known, "fault");
    server.table["known.test"] = {{}, 0, 0, alias};
    server.fails_type = fails;
    server.held_type = fails == 1 ? 28 : 1;  // the empty answer comes last
    loop.pass(30ms);
    Asked asked;
    resolver.ask("known.test", asked);
    ASSERT_TRUE(loop.until([&] { return server.waiting() == 1; }));
    loop.pass(20ms);
    server.release();
    server.held_type = 0;
    ASSERT_TRUE(loop.until([&] { return asked.done(); }));
    EXPECT_EQ(asked.text, known);
  }
}

TEST_F(DnsOfAFaultyServer, CompletesTheOtherFamilyWhileTheNameServerFailsForOne) {
  Settings brief = settings();
  brief.min_ttl = brief.max_ttl = 1ms;
  brief.stale_for = 1s;
  server.table["two.test"] = {{"127.0.0.1", "::1"}, 60, 0, {}};
  for (const int fails : {1, 28}) {
    server.fails_type = 0;
    Resolver resolver(*loop, brief);
    ASSERT_NE(resolve(resolver, "two.test"), "fault");
    const Instant known = Clock::now();
    server.fails_type = fails;
    loop.pass(5ms);
    const std::string other = fails == 1 ? "::1" : "127.0.0.1", cached = fails == 1 ? "127.0.0.1" : "::1";
    EXPECT_EQ(resolve(resolver, "two.test"), other + " " + cached);
    while (Clock::now() < known + brief.stale_for + 20ms) {
      loop.pass(5ms);
      EXPECT_NE(resolve(resolver, "two.test"), "fault");
    }
    loop.pass(5ms);
    EXPECT_EQ(resolve(resolver, "two.test"), other)
        << "stale addresses end, however often the other family is answered";
  }
}

TEST_F(DnsOfAFaultyServer, LeavesALoopThatHasNotAskedWhatAnotherOneKnows) {
  KnownNames known;
  Settings shared = settings();
  shared.known = &known;
  shared.stale_for = 2s;
  for (const bool silent : {false, true}) {
    server.mute = false;
    server.table["known.test"] = {{"127.0.0.1"}, 0, 0, {}};
    Resolver one(*loop, shared);
    ASSERT_EQ(resolve(one, "known.test"), "127.0.0.1");
    server.mute = silent;
    server.table["known.test"].rcode = 2;
    Resolver other(*loop, shared);
    EXPECT_EQ(resolve(other, "known.test"), "127.0.0.1");
    EXPECT_EQ(resolve(other, "known.test"), "127.0.0.1");
  }
  server.mute = false;
  server.table.erase("known.test");
  Resolver third(*loop, shared);
  EXPECT_EQ(resolve(third, "known.test"), "fault") << "the name has gone";
  server.table["known.test"] = {{}, 0, 2, {}};
  Resolver fourth(*loop, shared);
  EXPECT_EQ(resolve(fourth, "known.test"), "fault") << "and no loop knows it";
}

TEST_F(DnsOfAFaultyServer, LeavesOtherLoopsStaleAddressesNoLongerThanItsOwn) {
  KnownNames known;
  Settings shared = settings();
  shared.known = &known;
  shared.stale_for = 30ms;
  server.table["known.test"] = {{"127.0.0.1"}, 0, 0, {}};
  Resolver one(*loop, shared);
  ASSERT_EQ(resolve(one, "known.test"), "127.0.0.1");
  server.table["known.test"].rcode = 2;
  loop.pass(100ms);
  Resolver other(*loop, shared);
  EXPECT_EQ(resolve(other, "known.test"), "fault");
}

struct SomeKnownNames : ::testing::Test {
  void note(const std::string& kind, std::size_t count, Instant at, Duration life) {
    for (std::size_t n = 0; n < count; ++n) known.note(kind + std::to_string(n), addresses, at, at + life);
  }
  std::size_t found(const std::string& kind, std::size_t count, Instant at) const {
    std::size_t sum = 0;
    for (std::size_t n = 0; n < count; ++n) sum += known.find(kind + std::to_string(n), at).addresses.size();
    return sum;
  }
  const Instant now = Clock::now();
  const std::vector<net::Address> addresses{*net::Address::literal("127.0.0.1", 0)};
  KnownNames known;
};

TEST_F(SomeKnownNames, AreBounded) {
  note("n", KnownNames::kMax + 100, now, 1s);
  EXPECT_EQ(found("n", KnownNames::kMax + 100, now), KnownNames::kMax);
}

TEST_F(SomeKnownNames, MakeRoomForOthersWhenTheyAreTooStale) {
  note("old", KnownNames::kMax, now, 1s);
  note("new", 100, now + 1s, 1h);
  EXPECT_EQ(found("new", 100, now + 1s), 100U);
}

TEST_F(SomeKnownNames, LeaveInTheOrderOfTheirEnds) {
  note("long", 100, now, 1h);
  note("short", KnownNames::kMax - 100, now, 1min);
  note("next", 100, now, 2min);
  EXPECT_EQ(found("long", 100, now), 100U);
  EXPECT_EQ(found("next", 100, now), 100U);
  EXPECT_EQ(found("short", KnownNames::kMax - 100, now), KnownNames::kMax - 200);
}

TEST_F(SomeKnownNames, CountOnceHoweverOftenTheyAreNoted) {
  for (int n = 1; n <= 3; ++n) note("same", KnownNames::kMax, now, n * 1min);
  EXPECT_EQ(found("same", KnownNames::kMax, now + 2min), KnownNames::kMax);
  known.forget("same0");
  note("other", 1, now, 1s);
  EXPECT_EQ(found("same", KnownNames::kMax, now) + found("other", 1, now), KnownNames::kMax);
}

TEST_F(DnsOfAFaultyServer, SaysOfAnAliasWithoutAddressesThatThereAreNone) {
  server.table["alias.test"] = {{}, 60, 0, "other.test"};
  Resolver resolver(*loop, settings());
  EXPECT_EQ(resolve(resolver, "alias.test"), "fault");
  EXPECT_EQ(last->kind, FaultKind::dns_error);
  EXPECT_NE(last->detail.find("no data"), std::string::npos) << last->detail;
}

TEST_F(DnsOfAFaultyServer, FindsANameThatIsTooLongForASearchDomain) {
  const std::string label(63, 'a'), longest = label + "." + label + "." + label + "." + std::string(61, 'b');
  ASSERT_EQ(longest.size(), 253U);
  server.table[longest] = {{"127.0.0.1"}, 60, 0, {}};
  const net::TemporaryFile dots("search svc.test\noptions timeout:1 attempts:1 ndots:9\n");
  Settings many = settings();
  many.resolv_conf = dots.path();
  Resolver resolver(*loop, many);
  EXPECT_EQ(resolve(resolver, longest), "127.0.0.1");
  EXPECT_EQ(resolve(resolver, "b" + longest.substr(1)), "fault");
}

TEST_F(DnsOfAFaultyServer, LearnsNothingOfANameFromTheAnswerForALongerOne) {
  exec::assume_on_loop();
  const net::TemporaryFile patient("search svc.test\noptions timeout:5 attempts:1\n");
  Settings longer = settings();
  longer.resolv_conf = patient.path();
  server.table["api.test"] = {{"127.0.0.1"}, 60, 0, {}};
  server.table["api.test.other.test"] = {{"127.0.0.9"}, 60, 0, {}};
  server.held = std::string("api\4test\0", 9);
  server.stop_tcp();
  Resolver resolver(*loop, longer);
  Asked asked;
  resolver.ask("api.test", asked);
  ASSERT_TRUE(loop.until([&] { return server.waiting() == 2; }));
  server.only_tcp = true;
  resolve(resolver, "api.test.other.test");  // truncated
  server.release();
  ASSERT_TRUE(loop.until([&] { return asked.done(); }));
  EXPECT_EQ(asked.text, "127.0.0.1") << "without a query over TCP";
}

// A truncated alias says that there are addresses, but has none.
TEST_F(DnsOfAFaultyServer, AsksForNoPartOfANameThatWaitsForItsTurnOverTcp) {
  exec::assume_on_loop();
  constexpr int kTurns = 32;
  const net::TemporaryFile patient("options timeout:5 attempts:1\n");
  Settings longer = settings();
  longer.resolv_conf = patient.path();
  server.only_tcp = true;
  server.truncated_to = 1;
  server.mute_tcp = NameServer::kAny;
  Resolver resolver(*loop, longer);
  std::array<Asked, kTurns + 1> all;
  for (std::size_t n = 0; n < all.size(); ++n) {
    const std::string name = "n" + std::to_string(n) + ".test";
    server.table[name] = {{"127.0.0.1"}, 60, 0, "other.test"};
    resolver.ask(name, all[n]);
  }
  const std::string last_one = "n" + std::to_string(kTurns) + ".test";
  ASSERT_TRUE(loop.until([&] { return server.asked[last_one] == 1; }));
  std::ofstream(patient.path()) << "options timeout:5 attempts:2\n";  // the server of all these queries retires
  Asked later;
  resolver.ask("later.test", later);
  loop.pass(500ms);
  EXPECT_EQ(server.asked[last_one], 1);
}

// c-ares then reports the query as successful while it is being destroyed.
TEST_F(DnsOfAFaultyServer, AResolverMayEndWhenOnlyOneFamilyWasAnswered) {
  exec::assume_on_loop();
  server.table["half.test"] = {{"127.0.0.1", "::1"}, 60, 0, {}};
  for (const bool tcp : {false, true}) {
    server.only_tcp = tcp;
    server.held_type = tcp ? 0 : 28;
    server.mute_tcp = tcp ? 28 : 0;
    Asked asked;
    {
      Resolver resolver(*loop, settings());
      resolver.ask("half.test", asked);
      ASSERT_TRUE(loop.until([&] { return tcp ? server.tcp_responses == 1 : server.waiting() == 1; }));
      loop.pass(20ms);
    }
    loop.pass(5ms);
    EXPECT_FALSE(asked.done());
  }
}

}  // namespace
}  // namespace carpool::proxy::dns
