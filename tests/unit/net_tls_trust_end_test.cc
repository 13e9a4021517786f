// Unit tests of the lifetime of a session: it ends with the first of the certificates and revocation lists that its
// verification relied on.
#include <ctime>

#include "proxy/net/tls/ticket.h"
#include "proxy/net/tls/trust_end.h"
#include "tests/unit/net_tls_chain_support.h"

namespace carpool::proxy::tls {
namespace {

constexpr auto kBrief = 3s;
constexpr const char* kVersions[] = {"1.2", "1.3"};

// A pair whose root, intermediate authority or list of either expires after kBrief.
struct Ending {
  Ending(std::string what, const Lives& lives, std::chrono::seconds list_of_root, std::chrono::seconds list_of_middle,
         bool of_the_client, const std::string& version)
      : name(std::move(what) + ", TLS " + version), chain(lives) {
    const std::string lists = revocation_list(chain.root, list_of_root) + revocation_list(chain.middle, list_of_middle);
    pair = std::make_unique<ChainPair>(chain, lists, of_the_client, version);
  }
  std::string name;
  Chain chain;
  std::unique_ptr<ChainPair> pair;
  bool ended = false;
};

// Calls begin() with each pair as soon as it exists: on a busy machine the first one could end before all of them
// exist.
template <class Begin>
std::vector<Ending> all_that_may_end(bool of_the_client, const Begin& begin) {
  std::vector<Ending> all;
  for (const char* version : kVersions) {
    begin(all.emplace_back("the root", Lives{kBrief, 1h, 1h}, 1h, 1h, of_the_client, version));
    begin(all.emplace_back("the intermediate authority", Lives{1h, kBrief, 1h}, 1h, 1h, of_the_client, version));
    begin(all.emplace_back("the root's list", Lives{}, kBrief, 1h, of_the_client, version));
    begin(all.emplace_back("the intermediate authority's list", Lives{}, 1h, kBrief, of_the_client, version));
  }
  return all;
}

// The second connection resumes the session of the first.
void expect_resumption(Ending& one) {
  ASSERT_NE(one.pair->connect(), nullptr) << one.name << one.pair->refusal;
  const auto again = one.pair->connect();
  ASSERT_NE(again, nullptr) << one.name << one.pair->refusal;
  EXPECT_TRUE(again->server->security().resumed) << one.name;
}

// Connects all of them in turns, so that each ticket comes from a resumption shortly before, until each verification
// has failed.
void expect_ends(std::vector<Ending>& all) {
  const Instant limit = Clock::now() + 20s;
  std::size_t left = all.size();
  while (left != 0 && Clock::now() < limit) {
    ChainPair::replace_keys();
    for (Ending& one : all) {
      if (one.ended || one.pair->connect() != nullptr) continue;
      one.ended = true;
      --left;
    }
  }
  for (const Ending& one : all) {
    const bool says = one.pair->refusal.find("expired") != std::string::npos;
    EXPECT_TRUE(one.ended && says) << one.name << ": " << one.pair->refusal;
  }
}

class TlsTrust : public ::testing::TestWithParam<bool> {};

TEST_P(TlsTrust, EndsASessionWithTheFirstThatEndsInItsChain) {
  std::vector<Ending> all = all_that_may_end(GetParam(), expect_resumption);
  expect_ends(all);
}

INSTANTIATE_TEST_SUITE_P(OfEitherSide, TlsTrust, ::testing::Values(true, false),
                         [](const auto& side) { return side.param ? "InAClient" : "InAnOrigin"; });

TEST(TlsTrustOfAnOrigin, EndsASessionAlsoInTheProcessThatTookItOver) {
  std::vector<Ending> all = all_that_may_end(false, [](Ending& one) {
    ASSERT_NE(one.pair->connect(), nullptr) << one.name;
    one.pair->hand_over();
    const auto again = one.pair->connect();
    ASSERT_NE(again, nullptr) << one.name;
    EXPECT_TRUE(again->client->security().resumed) << one.name << ": the session was taken over";
  });
  expect_ends(all);
}

SessionPtr session_of(const std::string& text) {
  const auto* at = reinterpret_cast<const unsigned char*>(text.data());
  return SessionPtr(d2i_SSL_SESSION(nullptr, &at, static_cast<long>(text.size())));
}

// Marks the ticket of a session, as after a full handshake with a peer that is trusted for `left` seconds more.
void mark_with(SSL_SESSION* session, long left) {
  const std::unique_ptr<SSL_CTX, FreeWith<SSL_CTX_free>> context(SSL_CTX_new(TLS_method()));
  const std::unique_ptr<SSL, FreeWith<SSL_free>> ssl(SSL_new(context.get()));
  TlsTransport transport{Fd()};
  transport.trust_until(std::time(nullptr) + left);
  SSL_set_app_data(ssl.get(), &transport);
  ASSERT_EQ(SSL_set_session(ssl.get(), session), 1);
  EXPECT_EQ(mark_ticket(ssl.get(), nullptr), 1);
}

// A client may offer a ticket at any time.
TEST(TlsTicket, IsWorthNothingAfterTheEndOfTrustOrWithoutOne) {
  const Chain chain;
  ChainPair pair(chain, "", false);
  ASSERT_NE(pair.connect(), nullptr);
  const std::vector<std::string> all = pair.client->hand_out("localhost:443", 1);
  ASSERT_EQ(all.size(), 1U);
  const SessionPtr session = session_of(all[0]);
  ASSERT_TRUE(session);
  const auto judged = [&] { return check_ticket(nullptr, session.get(), nullptr, 0, SSL_TICKET_SUCCESS, nullptr); };
  EXPECT_EQ(judged(), SSL_TICKET_RETURN_USE) << "it ends with the chain";
  ASSERT_TRUE(write_trust_end(session.get(), std::time(nullptr) - 1));
  EXPECT_EQ(judged(), SSL_TICKET_RETURN_IGNORE_RENEW);
  ASSERT_EQ(SSL_SESSION_set1_ticket_appdata(session.get(), nullptr, 0), 1);
  EXPECT_EQ(judged(), SSL_TICKET_RETURN_IGNORE_RENEW);
}

// The certificates are verified before the ticket is created; the second in which they expire may lie in between.
TEST(TlsTicket, WhoseTrustEndsWhileItIsMadeLivesASecondAndIsWorthNothing) {
  const Chain chain;
  ChainPair pair(chain, "", false);
  ASSERT_NE(pair.connect(), nullptr);
  const std::vector<std::string> all = pair.client->hand_out("localhost:443", 1);
  ASSERT_EQ(all.size(), 1U);
  for (const long left : {-1L, 0L, 100L}) {
    const SessionPtr session = session_of(all[0]);
    ASSERT_TRUE(session);
    mark_with(session.get(), left);
    const long life = SSL_SESSION_get_timeout(session.get());
    const long age = std::time(nullptr) - SSL_SESSION_get_time(session.get());  // the life counts from its begin
    EXPECT_TRUE(left > 0 ? life > 1 && life <= left + age : life == 1) << life;
    std::string text(static_cast<std::size_t>(i2d_SSL_SESSION(session.get(), nullptr)), '\0');
    auto* into = reinterpret_cast<unsigned char*>(text.data());
    ASSERT_GT(i2d_SSL_SESSION(session.get(), &into), 0);
    const SessionPtr read = session_of(text);
    ASSERT_TRUE(read);
    EXPECT_EQ(SSL_SESSION_get_timeout(read.get()), life) << "a life that the client reads otherwise";
    EXPECT_EQ(check_ticket(nullptr, read.get(), nullptr, 0, SSL_TICKET_SUCCESS, nullptr),
              left > 0 ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_IGNORE_RENEW);
  }
}

TEST(TlsTrustOfAnOrigin, IsOfNoConcernWithoutVerification) {
  const Chain chain(Lives{-1min, 1h, 1h});
  ChainPair pair(chain, "", false);
  EXPECT_EQ(pair.connect(), nullptr);
  ClientSettings blind;
  blind.verify = false;
  auto made = ClientContext::make(blind);
  ASSERT_TRUE(made);
  pair.client = std::move(*made);
  ASSERT_NE(pair.connect(), nullptr);
  const auto again = pair.connect();
  ASSERT_NE(again, nullptr);
  EXPECT_TRUE(again->client->security().resumed);
}

}  // namespace
}  // namespace carpool::proxy::tls
