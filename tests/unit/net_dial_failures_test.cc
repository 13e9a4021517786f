// Unit tests of which failed dials count as failures of an address.
#include "proxy/net/dial.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <array>
#include <optional>

#include "proxy/net/address_set.h"
#include "proxy/net/dns/resolver.h"
#include "proxy/net/parent_proxy.h"
#include "tests/unit/net_tls_support.h"

namespace carpool::proxy::net {
namespace {

pool::Origin origin_of(const std::string& host, std::uint16_t port) {
  pool::Origin origin;
  origin.host = host;
  origin.port = port;
  return origin;
}

// Answers each connection with the same bytes.
struct Answering final : exec::Watcher {
  Answering(TurnedLoop& l, int f, std::string_view b, bool c = false)
      : loop(l), fd(f), bytes(b), closes(c), key(begin(l, f)) {}
  ~Answering() {
    exec::assume_on_loop();
    loop->unwatch(fd, key);
  }
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;
  void on_ready(exec::Ready) override LOOP_ONLY {
    for (int accepted; (accepted = ::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      Fd socket(accepted);
      ::send(accepted, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (!closes) open.push_back(std::move(socket));
    }
  }
  exec::WatchKey begin(TurnedLoop& l, int f) {
    exec::assume_on_loop();
    return *l->watch(f, *this);
  }
  TurnedLoop& loop;
  const int fd;
  const std::string bytes;
  const bool closes;
  exec::WatchKey key;
  std::vector<Fd> open;
};

struct AFailedDial : ::testing::Test, DialOwner {
  void on_dialed(Result<Dialed> result) override {
    if (!result) fault.emplace(result.take_fault());
    dial.reset();
  }
  // Returns the failures of the address.
  std::uint32_t dialed(const pool::Origin& origin, DialPlan plan) {
    exec::assume_on_loop();
    AddressSet addresses;
    plan.origin = &origin;
    plan.address_set = &addresses;
    fault.reset();
    dial.emplace(*loop, resolver, std::move(plan), *this);
    dial->start();
    EXPECT_TRUE(loop.until([&] { return !dial; }));
    EXPECT_TRUE(fault);
    return addresses.all(loop->now()).front().failures;
  }
  TurnedLoop loop;
  dns::Resolver resolver{*loop, {}};
  const Fd listener = listen_on("127.0.0.1:0");
  const pool::Origin here = origin_of("127.0.0.1", Address::local_of(listener.get()).port());
  std::optional<Dial> dial;
  std::optional<Fault> fault;
};

TEST_F(AFailedDial, IsNoneOfTheAddressIfItsOriginRefusesHttp1) {
  constexpr char kNoApplicationProtocol = 120, kHandshakeFailure = 40;
  const auto server = tls::serve();
  const auto client = tls::trust(*server);
  for (const char alert : {kNoApplicationProtocol, kHandshakeFailure}) {
    const std::array<char, 7> record{21, 3, 3, 0, 2, 2, alert};
    Answering end(loop, listener.get(), {record.data(), record.size()});
    for (const bool alone : {true, false}) {
      DialPlan plan;
      plan.tls = client.get();
      if (alone) plan.alpn = {"http/1.1"};
      const bool refused = alone && alert == kNoApplicationProtocol;
      EXPECT_EQ(dialed(here, std::move(plan)), refused ? 0U : 1U);
      ASSERT_TRUE(fault);
      EXPECT_EQ(fault->kind, FaultKind::tls_protocol);
      EXPECT_EQ(fault->side, refused ? Side::client : Side::upstream) << fault->detail;
    }
  }
}

// Replaces the text that the library has for an alert.
class RenamedAlert {
 public:
  explicit RenamedAlert(int alert)
      : error_(ERR_PACK(ERR_LIB_SSL, 0, SSL_AD_REASON_OFFSET + alert)), text_(ERR_reason_error_string(error_)) {
    name(replaced_, "another text");
  }
  ~RenamedAlert() { name(restored_, text_); }
  RenamedAlert(const RenamedAlert&) = delete;
  RenamedAlert& operator=(const RenamedAlert&) = delete;

 private:
  using Texts = std::array<ERR_STRING_DATA, 2>;  // kept by the library
  void name(Texts& texts, const char* text) const {
    texts = {{{error_, text}, {0, nullptr}}};
    ERR_load_strings(ERR_LIB_SSL, texts.data());
  }
  static inline Texts replaced_, restored_;
  const unsigned long error_;
  const char* const text_;
};

TEST_F(AFailedDial, IsNoneOfTheAddressWhateverTextTheLibraryHasForThisRefusal) {
  constexpr std::string_view kNoApplicationProtocol("\x15\x03\x03\x00\x02\x02\x78", 7);
  const auto server = tls::serve();
  const auto client = tls::trust(*server);
  const RenamedAlert renamed(SSL_AD_NO_APPLICATION_PROTOCOL);
  const Answering end(loop, listener.get(), kNoApplicationProtocol);
  DialPlan plan;
  plan.tls = client.get();
  plan.alpn = {"http/1.1"};
  EXPECT_EQ(dialed(here, std::move(plan)), 0U);
  EXPECT_EQ(fault->side, Side::client);
  EXPECT_TRUE(fault->detail.ends_with("another text")) << fault->detail;
}

TEST_F(AFailedDial, IsOneOfTheAddressOfAParentThatGivesNoAnswerToConnect) {
  const ParentProxy parent{here, {}};
  const auto origin = origin_of("far.test", 443);
  for (const std::string_view answer : {"", "HTTP/1.1 10", "HTTP/1.1 103 x\r\n\r\n", "HTTP/1.1 502 x\r\n\r\n"}) {
    const bool answers = answer.find("502") != answer.npos;
    Answering end(loop, listener.get(), answer, /*closes=*/!answers);
    DialPlan plan;
    plan.parent = &parent;
    plan.through_connect = true;
    EXPECT_EQ(dialed(origin, std::move(plan)), answers ? 0U : 1U) << answer;
    ASSERT_TRUE(fault);
    EXPECT_EQ(fault->kind, FaultKind::parent_refused) << fault->detail;
  }
}

}  // namespace
}  // namespace carpool::proxy::net
