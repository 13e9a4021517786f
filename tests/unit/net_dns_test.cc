#include <optional>

#include "proxy/net/dns/events.h"
#include "proxy/net/dns/lookup_result.h"
#include "proxy/net/dns/query.h"
#include "proxy/net/dns/resolv_conf.h"
#include "tests/unit/net_dns_support.h"

namespace carpool::proxy::dns {
namespace {

using namespace std::chrono_literals;
using net::NameServer;
using net::TurnedLoop;

TEST_F(Dns, FindsBothFamilies) {
  server.table["two.test"] = {{"127.0.0.1", "::1"}, 60, 0, {}};
  Resolver resolver(*loop, settings());
  const auto found = resolve(resolver, "two.test");
  EXPECT_TRUE(found == "127.0.0.1 ::1" || found == "::1 127.0.0.1") << found;
}

TEST_F(Dns, AnswersFromWhatItRemembersUntilTheTtlEnds) {
  server.table["one.test"] = {{"127.0.0.1"}, 60, 0, {}};
  Settings short_lived = settings();
  short_lived.max_ttl = 100ms;
  Resolver resolver(*loop, short_lived);
  Duration took = Duration::max();
  for (int tries = 0; tries < 8 && took >= 100ms; ++tries) {
    loop.pass(150ms);
    server.asked["one.test"] = 0;
    const Instant begin = Clock::now();
    EXPECT_EQ(resolve(resolver, "one.test"), "127.0.0.1");
    EXPECT_EQ(resolve(resolver, "one.test"), "127.0.0.1");
    took = Clock::now() - begin;
  }
  EXPECT_EQ(server.asked["one.test"], 1);
  server.table["one.test"] = {{"127.0.0.2"}, 60, 0, {}};
  loop.pass(150ms);
  EXPECT_EQ(resolve(resolver, "one.test"), "127.0.0.2");
}

TEST_F(Dns, ClampsATtlOfZeroUpwards) {
  server.table["zero.test"] = {{"127.0.0.1"}, 0, 0, {}};
  Settings clamped = settings();
  clamped.min_ttl = 10s;
  Resolver resolver(*loop, clamped);
  resolve(resolver, "zero.test");
  resolve(resolver, "zero.test");
  EXPECT_EQ(server.asked["zero.test"], 1);
}

TEST_F(Dns, AnswersWithAResponseOfZeroTtlAndKeepsItForNoLaterQuestion) {
  server.table["zero.test"] = {{"127.0.0.1"}, 0, 0, {}};
  Settings uncached = settings();
  uncached.min_ttl = uncached.stale_for = Duration::zero();
  Resolver resolver(*loop, uncached);
  EXPECT_EQ(resolve(resolver, "zero.test"), "127.0.0.1");
  EXPECT_EQ(server.asked["zero.test"], 1);
  EXPECT_EQ(resolve(resolver, "zero.test"), "127.0.0.1");
  EXPECT_EQ(server.asked["zero.test"], 2);
}

TEST_F(Dns, FollowsAnAliasAndItsTtl) {
  server.table["alias.test"] = {{"127.0.0.3"}, 60, 0, "real.test"};
  Resolver resolver(*loop, settings());
  EXPECT_EQ(resolve(resolver, "alias.test"), "127.0.0.3");
}

TEST_F(Dns, AsksOnceHoweverManyWait) {
  exec::assume_on_loop();
  server.table["many.test"] = {{"127.0.0.1"}, 60, 0, {}};
  Resolver resolver(*loop, settings());
  std::array<Asked, 50> all;
  for (auto& asked : all) resolver.ask("many.test", asked);
  ASSERT_TRUE(loop.until([&] { return all.back().done(); }));
  for (auto& asked : all) EXPECT_EQ(asked.results, 1);
  EXPECT_EQ(server.asked["many.test"], 1);
}

TEST_F(Dns, AQuestionMayDieWhileItWaits) {
  exec::assume_on_loop();
  server.table["gone.test"] = {{"127.0.0.1"}, 60, 0, {}};
  Resolver resolver(*loop, settings());
  Asked stays;
  {
    Asked dies;
    resolver.ask("gone.test", dies);
    resolver.ask("gone.test", stays);
  }
  EXPECT_TRUE(loop.until([&] { return stays.done(); }));
  EXPECT_EQ(stays.text, "127.0.0.1");
}

TEST_F(Dns, AsksAgainForEachQuestionWithoutANegativeTtl) {
  Settings uncached = settings();
  uncached.negative_ttl = Duration::zero();
  Resolver resolver(*loop, uncached);
  EXPECT_EQ(resolve(resolver, "none.test"), "fault");
  server.table["none.test"] = {{"127.0.0.1"}, 60, 0, {}};
  EXPECT_EQ(resolve(resolver, "none.test"), "127.0.0.1");
}

TEST_F(Dns, KeepsARefusalForItsNegativeTtl) {
  Settings brief = settings();
  brief.negative_ttl = 1s;
  Resolver resolver(*loop, brief);
  EXPECT_EQ(resolve(resolver, "none.test"), "fault");
  EXPECT_EQ(last->kind, FaultKind::dns_error);
  EXPECT_NE(last->detail.find("none.test"), std::string::npos) << last->detail;
  EXPECT_NE(last->detail.find("not found"), std::string::npos) << last->detail;
  const int before = server.asked["none.test"];
  EXPECT_EQ(resolve(resolver, "none.test"), "fault");
  EXPECT_EQ(server.asked["none.test"], before);
  server.table["none.test"] = {{"127.0.0.1"}, 60, 0, {}};
  loop.pass(1050ms);
  EXPECT_EQ(resolve(resolver, "none.test"), "127.0.0.1");
}

TEST_F(Dns, GivesUpWhenNobodyAnswers) {
  server.mute = true;
  Resolver resolver(*loop, settings());
  const Instant begin = Clock::now();
  EXPECT_EQ(resolve(resolver, "mute.test"), "fault");
  EXPECT_EQ(last->kind, FaultKind::dns_timeout) << last->detail;
  EXPECT_LT(Clock::now() - begin, 3s);  // resolv.conf's timeout and attempts, not c-ares' own
}

TEST_F(Dns, ServesStaleResponsesWhileTheNameServerFails) {
  Resolver resolver(*loop, settings());
  std::string name = "stale.test";
  const Duration first = TurnedLoop::shortest(900ms, [&] {  // before the name server's own timeout
    name.insert(0, "x");
    server.mute = false;
    server.table[name] = {{"127.0.0.1"}, 0, 0, {}};
    EXPECT_EQ(resolve(resolver, name), "127.0.0.1");
    server.mute = true;
    loop.pass(30ms);
    EXPECT_EQ(resolve(resolver, name), "127.0.0.1");
  });
  EXPECT_LT(first, 900ms);
  const Duration same = TurnedLoop::shortest(200ms, [&] { EXPECT_EQ(resolve(resolver, name), "127.0.0.1"); });
  EXPECT_LT(same, 200ms) << "the lookup is the same, which has been late once";
  loop.pass(1s);  // the failure is cached now
  const Duration next = TurnedLoop::shortest(200ms, [&] { EXPECT_EQ(resolve(resolver, name), "127.0.0.1"); });
  EXPECT_LT(next, 200ms);
}

TEST_F(Dns, ServesStaleResponsesAfterServfailAtOnce) {
  server.table["fail.test"] = {{"127.0.0.1"}, 0, 0, {}};
  Resolver resolver(*loop, settings());
  EXPECT_EQ(resolve(resolver, "fail.test"), "127.0.0.1");
  server.table["fail.test"].rcode = 2;
  loop.pass(30ms);
  EXPECT_EQ(resolve(resolver, "fail.test"), "127.0.0.1");
}

TEST_F(Dns, AnAuthoritativeNoEndsWhatWasKnown) {
  server.table["left.test"] = {{"127.0.0.1"}, 0, 0, {}};
  Resolver resolver(*loop, settings());
  EXPECT_EQ(resolve(resolver, "left.test"), "127.0.0.1");
  server.table.erase("left.test");
  loop.pass(30ms);
  EXPECT_EQ(resolve(resolver, "left.test"), "fault");
  EXPECT_EQ(last->kind, FaultKind::dns_error);
}

TEST_F(Dns, StaleResponsesEndToo) {
  server.table["old.test"] = {{"127.0.0.1"}, 0, 0, {}};
  Settings brief = settings();
  brief.stale_for = 50ms;
  Resolver resolver(*loop, brief);
  EXPECT_EQ(resolve(resolver, "old.test"), "127.0.0.1");
  server.mute = true;
  loop.pass(100ms);
  EXPECT_EQ(resolve(resolver, "old.test"), "fault");
}

// Lets time pass without a turn of the loop: what is due is delivered later than it was asked for.
void pass_without_a_turn(Duration time) {
  const Instant end = Clock::now() + time;
  while (Clock::now() < end) {
  }
}

TEST_F(Dns, AsksAgainIfAResponseExpiresBeforeItIsDelivered) {
  exec::assume_on_loop();
  server.table["brief.test"] = {{"127.0.0.1"}, 0, 0, {}};
  Settings brief = settings();
  brief.stale_for = Duration::zero();
  Resolver resolver(*loop, brief);
  EXPECT_EQ(resolve(resolver, "brief.test"), "127.0.0.1");
  Asked late;
  resolver.ask("brief.test", late);
  pass_without_a_turn(brief.min_ttl);
  EXPECT_TRUE(loop.until([&] { return late.done(); }));
  EXPECT_EQ(late.text, "127.0.0.1");
  EXPECT_EQ(server.asked["brief.test"], 2);
}

TEST_F(Dns, WaitsForALookupInProgressWhenAStaleResponseExpiresBeforeItIsDelivered) {
  exec::assume_on_loop();
  server.table["late.test"] = {{"127.0.0.1"}, 0, 0, {}};
  Settings brief = settings();
  brief.stale_for = 1500ms;
  Resolver resolver(*loop, brief);
  EXPECT_EQ(resolve(resolver, "late.test"), "127.0.0.1");
  const Instant after = Clock::now();
  server.table["late.test"].rcode = 2;
  loop.pass(30ms);
  EXPECT_EQ(resolve(resolver, "late.test"), "127.0.0.1") << "stale, and the name server has failed";
  server.table["late.test"] = {{"127.0.0.2"}, 0, 0, {}};
  loop.pass(1050ms);  // the failure is forgotten
  Asked late;
  resolver.ask("late.test", late);
  pass_without_a_turn(after + 1600ms - Clock::now());
  EXPECT_TRUE(loop.until([&] { return late.done(); }));
  EXPECT_EQ(late.text, "127.0.0.2");
}

// Asks for another name when it has its own result.
struct AskingAgain final : Question {
  AskingAgain(Resolver& of, Asked& other) : resolver(of), again(other) {}
  void on_addresses(Result<std::vector<net::Address>>) override {
    exec::assume_on_loop();
    resolver.ask("held-b.test", again);
  }
  Resolver& resolver;
  Asked& again;
};

TEST_F(Dns, AResultThatIsAboutToBeDeliveredAnswersANewQuestionToo) {
  exec::assume_on_loop();
  server.held = "held";
  const net::TemporaryFile patient("options timeout:5 attempts:1\n");
  Settings uncached = settings();
  uncached.resolv_conf = patient.path();
  uncached.negative_ttl = Duration::zero();
  Resolver resolver(*loop, uncached);
  Asked old, again;
  AskingAgain first(resolver, again);
  resolver.ask("held-a.test", first);
  resolver.ask("held-b.test", old);
  EXPECT_TRUE(loop.until([&] { return server.waiting() == 4; }));  // both families of each
  server.release();
  server.held = "-";
  EXPECT_TRUE(loop.until([&] { return old.done() && again.done(); }));
  resolve(resolver, "later.test");  // the server has read all queries before this one
  EXPECT_EQ(server.asked["held-b.test"], 1);
}

TEST_F(Dns, AsksAgainForADistrustedName) {
  exec::assume_on_loop();
  server.table["moved.test"] = {{"127.0.0.1"}, 300, 0, {}};
  Settings lasting = settings();
  lasting.min_ttl = 60s;
  Resolver resolver(*loop, lasting);
  EXPECT_EQ(resolve(resolver, "moved.test"), "127.0.0.1");
  server.table["moved.test"] = {{"127.0.0.2"}, 300, 0, {}};
  resolver.mark_stale("moved.test");
  EXPECT_EQ(resolve(resolver, "moved.test"), "127.0.0.2");
}

TEST_F(Dns, KnowsLocalhostWithoutAsking) {
  Resolver resolver(*loop, settings());
  EXPECT_NE(resolve(resolver, "localhost").find("127.0.0.1"), std::string::npos);
  EXPECT_EQ(server.asked.count("localhost"), 0U);
}

TEST_F(Dns, AsksForNoNameBelowLocalhostThoughTheHostsFileHasNone) {
  for (const std::string_view name : {"app.localhost", "a.b.localhost"}) {
    server.table[std::string(name)] = {{"127.0.0.9"}, 60, 0, {}};
    Resolver resolver(*loop, settings());
    EXPECT_EQ(resolve(resolver, name), "127.0.0.1 ::1");
    EXPECT_EQ(server.asked.count(std::string(name)), 0U);
  }
  server.table["notlocalhost.svc.test"] = {{"127.0.0.9"}, 60, 0, {}};
  server.table["localhost.test"] = {{"127.0.0.8"}, 60, 0, {}};
  Resolver resolver(*loop, settings());
  EXPECT_EQ(resolve(resolver, "localhost.test"), "127.0.0.8");
  EXPECT_EQ(resolve(resolver, "notlocalhost"), "127.0.0.9");
}

TEST_F(Dns, SearchesDomains) {
  server.table["api.svc.test"] = {{"127.0.0.9"}, 60, 0, {}};
  Resolver resolver(*loop, settings());
  EXPECT_EQ(resolve(resolver, "api"), "127.0.0.9");
}

TEST_F(Dns, TakesLongResponsesOverTcp) {
  NameServer::Record large{{}, 60, 0, {}};
  for (int i = 1; i <= 100; ++i) large.addresses.push_back("127.0.1." + std::to_string(i));
  server.table["large.test"] = large;
  server.only_tcp = true;
  Resolver resolver(*loop, settings());
  const auto found = resolve(resolver, "large.test");
  EXPECT_EQ(std::count(found.begin(), found.end(), ' '), 99) << found;
  EXPECT_GE(server.tcp_responses, 2);
}

struct Seen final : Events {
  void on_dns_event(metrics::Dns what, std::uint64_t n, std::string_view) override {
    counts[static_cast<std::size_t>(what)] += n;
  }
  std::uint64_t count(metrics::Dns what) const { return counts[static_cast<std::size_t>(what)]; }
  std::array<std::uint64_t, metrics::kDns.size()> counts{};
};

TEST_F(Dns, ATruncatedResponseWhoseTcpConnectionFailsHarmsNoOtherName) {
  exec::assume_on_loop();
  for (int i = 0; i < 10; ++i) server.table["held" + std::to_string(i) + ".test"] = {{"127.0.0.1"}, 60, 0, {}};
  server.held = "held";
  server.stop_tcp();
  const net::TemporaryFile patient("options timeout:5 attempts:1\n");
  Settings longer = settings();
  longer.resolv_conf = patient.path();
  Resolver resolver(*loop, longer);
  std::array<Asked, 10> others;
  for (std::size_t i = 0; i < others.size(); ++i) resolver.ask("held" + std::to_string(i) + ".test", others[i]);
  ASSERT_TRUE(loop.until([&] { return server.waiting() == 2 * others.size(); }));  // both families of each
  server.only_tcp = true;
  EXPECT_EQ(resolve(resolver, "large.test"), "fault");
  EXPECT_EQ(last->kind, FaultKind::dns_error);
  for (const Asked& other : others) EXPECT_FALSE(other.done());
  server.release();
  ASSERT_TRUE(loop.until([&] { return others.back().done(); }));
  for (const Asked& other : others) EXPECT_EQ(other.text, "127.0.0.1");
}

TEST_F(Dns, MakesDoWithAPartOfTheAddressesWhenTheRestCannotBeFetched) {
  server.table["part.test"] = {{"127.0.0.1", "127.0.0.2", "127.0.0.3"}, 60, 0, {}};
  server.only_tcp = true;
  server.truncated_to = 2;
  server.stop_tcp();
  Resolver resolver(*loop, settings());
  const std::string found = resolve(resolver, "part.test");
  EXPECT_TRUE(found == "127.0.0.1 127.0.0.2" || found == "127.0.0.2 127.0.0.1") << found;
}

TEST_F(Dns, AsksATruncatedNameOverTcpInItsSearchDomain) {
  server.only_tcp = true;
  for (const std::string domain : {"svc.test", "SVC.Other.Test"}) {
    server.table["api." + domain] = {{"127.0.0.9"}, 60, 0, {}};
    const net::TemporaryFile searching("search " + domain + ".\noptions timeout:1 attempts:1\n");
    Settings searches = settings();
    searches.resolv_conf = searching.path();
    Resolver resolver(*loop, searches);
    EXPECT_EQ(resolve(resolver, "api"), "127.0.0.9");
  }
}

TEST_F(Dns, AsksAgainWhileTheNameServerRestarts) {
  exec::assume_on_loop();
  server.table["one.test"] = {{"127.0.0.1"}, 60, 0, {}};
  Seen seen;
  Settings observed = settings();
  observed.events = &seen;
  Resolver resolver(*loop, observed);
  server.stop_udp();
  Asked asked;
  resolver.ask("one.test", asked);
  ASSERT_TRUE(loop.until([&] { return seen.count(metrics::Dns::asked_again) > 0; }));
  server.start_udp();
  EXPECT_TRUE(loop.until([&] { return asked.done(); }));
  EXPECT_EQ(asked.text, "127.0.0.1");
}

TEST_F(Dns, RemembersNoRefusalFromANameServerThatWasNotThere) {
  server.table["one.test"] = {{"127.0.0.1"}, 60, 0, {}};
  Resolver resolver(*loop, settings());
  server.stop_udp();
  EXPECT_EQ(resolve(resolver, "one.test"), "fault");
  server.start_udp();
  EXPECT_EQ(resolve(resolver, "one.test"), "127.0.0.1") << "at once";
}

TEST_F(Dns, FollowsAResolvConfThatChanges) {
  server.table["api.other.test"] = {{"127.0.0.9"}, 60, 0, {}};
  Seen seen;
  Settings observed = settings();
  observed.events = &seen;
  observed.negative_ttl = 1s;
  Resolver resolver(*loop, observed);
  EXPECT_EQ(resolve(resolver, "api"), "fault");
  std::ofstream(conf.path()) << "options timeout:1 attempts:1\nsearch other.test\n";
  loop.pass(1050ms);  // the refusal has expired
  EXPECT_EQ(resolve(resolver, "api"), "127.0.0.9");
  EXPECT_EQ(seen.count(metrics::Dns::resolv_conf_changed), 1U);
}

TEST_F(Dns, KeepsABoundedNumberOfAddresses) {
  NameServer::Record huge{{}, 60, 0, {}};
  for (int i = 0; i < 4000; ++i) {
    huge.addresses.push_back("10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250 + 1));
  }
  server.table["huge.test"] = huge;
  server.only_tcp = true;
  Seen seen;
  Settings observed = settings();
  observed.events = &seen;
  Resolver resolver(*loop, observed);
  const std::string found = resolve(resolver, "huge.test");
  EXPECT_EQ(std::count(found.begin(), found.end(), ' '), static_cast<std::ptrdiff_t>(kMaxAddresses - 1));
  EXPECT_EQ(seen.count(metrics::Dns::addresses_left_out), 4000 - kMaxAddresses);
}

TEST(AnsweredQuestion, IsNamedInLowerCase) {
  const auto datagram = [](std::string_view flags) {
    return "id" + std::string(flags) + std::string("\0\1\0\1\0\0\0\0", 8) + std::string("\3WWW\4test\0\0\1\0\1", 14);
  };
  ASSERT_TRUE(question_of(datagram("\x83\x80")));
  EXPECT_EQ(question_of(datagram("\x83\x80"))->name, "www.test");
  EXPECT_TRUE(question_of(datagram("\x83\x80"))->truncated);
  EXPECT_FALSE(question_of(datagram("\x81\x80"))->truncated);
  EXPECT_FALSE(question_of(datagram("\x03\x80"))) << "nobody has answered";
  const std::string whole = datagram("\x83\x80");
  for (std::size_t size = 0; size < whole.size() - 4; ++size) EXPECT_FALSE(question_of(whole.substr(0, size))) << size;
}

TEST_F(Dns, ReportsARefusingNameServer) {
  Settings refused = settings();
  refused.servers = {net::refusing("127.0.0.1:0")};
  Resolver resolver(*loop, refused);
  EXPECT_EQ(resolve(resolver, "any.test"), "fault");
  EXPECT_TRUE(last->kind == FaultKind::dns_error || last->kind == FaultKind::dns_timeout) << last->detail;
}

TEST_F(Dns, AResolverMayEndWithQuestionsInFlight) {
  exec::assume_on_loop();
  server.mute = true;
  Asked asked;
  {
    Resolver resolver(*loop, settings());
    resolver.ask("mute.test", asked);
    loop.pass(5ms);
  }
  loop.pass(5ms);
  EXPECT_FALSE(asked.done());
}

TEST_F(Dns, HoldsABoundedNumberOfNames) {
  exec::assume_on_loop();
  Resolver resolver(*loop, settings());
  std::vector<std::unique_ptr<Asked>> all;
  for (int i = 0; i < 5000; ++i) {
    all.push_back(std::make_unique<Asked>());
    resolver.ask("a" + std::to_string(i) + ".onion", *all.back());  // answered without a name server (RFC 7686)
    if (i % 100 == 0) loop->turn(false);
  }
  EXPECT_TRUE(loop.until([&] { return all.back()->done(); }));
  for (const auto& asked : all) EXPECT_EQ(asked->results, 1);
}

TEST(ResolvConf, ReadsTimeoutAndAttempts) {
  const auto read =
      parse_resolv_options("nameserver 1.2.3.4\n  options ndots:2 timeout:1 attempts:3\n# options timeout:9");
  EXPECT_EQ(read.timeout_s, 1);
  EXPECT_EQ(read.attempts, 3);
}

TEST(ResolvConf, KeepsDefaultsForNonsense) {
  const auto read = parse_resolv_options("options timeout: attempts:x timeout:1x\noption attempts:4");
  EXPECT_EQ(read.timeout_s, 5);
  EXPECT_EQ(read.attempts, 2);
  EXPECT_EQ(parse_resolv_options("options timeout:0 attempts:99").timeout_s, 1);
  EXPECT_EQ(parse_resolv_options("options timeout:0 attempts:99").attempts, 5);
}

}  // namespace
}  // namespace carpool::proxy::dns
