#include <gtest/gtest.h>

#include "tests/unit/http_h2_support.h"

namespace carpool::proxy::http {
namespace {

constexpr int kClosed = static_cast<int>(H2Error::stream_closed);
constexpr int kErrorProtocol = static_cast<int>(H2Error::protocol_error);

struct StreamServer : End {
  StreamServer() : End(H2Role::server) {
    receive(preface());
    pull();
  }
  std::string response_to(std::string_view bytes) {
    receive(bytes);
    return pull();
  }
};

TEST(AStreamThatItsClientEnded, TakesNoMoreFrames) {
  const std::string kinds[] = {data(1, "x"), headers(1, get())};
  for (const std::string& late : kinds) {
    StreamServer server;
    server.response_to(headers(1, get(), false) + frame(3, 0, 1, number(8)));
    EXPECT_EQ(error_of(server.response_to(late), 0), kClosed);
  }
}

TEST(AStreamThatWeReset, ForgivesWhatWasOnItsWay) {
  StreamServer server;
  server.response_to(headers(1, get(), false));
  server.session.reset(*server.streams.at(1).stream, H2Error::cancel);
  server.pull();
  EXPECT_EQ(error_of(server.response_to(data(1, "late", false) + headers(1, {{"x-sum", "1"}})), 0), -1);
  server.response_to(headers(3, get()));
  EXPECT_EQ(server.streams.size(), 2U);
}

// A server may reset all streams of a client at once, and each of their requests may end with trailers.
TEST(StreamsThatWeReset, ForgiveTrailersHoweverManyTheyAre) {
  StreamServer server;
  const unsigned most = 2 * H2Options().max_streams;
  std::string late;
  for (unsigned id = 1; id < most; id += 2) {
    server.receive(headers(id, get(), false));
    late += headers(id, {{"x-sum", "1"}});
  }
  ASSERT_EQ(server.streams.size(), H2Options().max_streams);
  for (auto& [id, record] : server.streams) server.session.reset(*record.stream, H2Error::no_error);
  server.pull();
  EXPECT_EQ(error_of(server.response_to(late), 0), -1);
  server.response_to(headers(most + 1, get()));
  EXPECT_EQ(server.streams.size(), H2Options().max_streams + 1);
}

TEST(AStreamNumberThatWasPassedOver, IsNeverUsed) {
  StreamServer server;
  server.response_to(headers(5, get()));
  EXPECT_EQ(error_of(server.response_to(headers(3, get())), 0), kErrorProtocol);
}

TEST(TheConnection, IsNoStreamThatEnded) {
  for (const std::string& misplaced : {data(0, "x"), headers(0, get()), frame(3, 0, 0, number(8))}) {
    StreamServer fresh;
    EXPECT_EQ(error_of(fresh.response_to(misplaced), 0), kErrorProtocol);
    StreamServer used;
    used.response_to(headers(1, get(), false) + frame(3, 0, 1, number(8)));
    EXPECT_EQ(error_of(used.response_to(misplaced), 0), kErrorProtocol);
  }
}

TEST(AStreamThatDependsOnItself, EndsTheSessionInAnySplit) {
  const std::string bytes = frame(2, 0, 3, number(3) + "\x10");
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    StreamServer server;
    server.receive(bytes.substr(0, cut));
    server.receive(bytes.substr(cut));
    EXPECT_EQ(error_of(server.pull(), 0), kErrorProtocol) << cut;
  }
  StreamServer server;
  EXPECT_EQ(error_of(server.response_to(frame(2, 0, 3, number(1) + "\x10")), 0), -1);
}

RequestHead http2(std::string_view scheme, std::string_view authority, std::string_view host = {}) {
  RequestHead head;
  head.version = Version::http2;
  head.method = "GET";
  head.target = "/x";
  head.scheme = scheme;
  head.authority = authority;
  if (!host.empty()) head.fields.add("host", host);
  return head;
}

TEST(TheTargetOfAnH2Request, IsItsSchemeAndAuthority) {
  const RequestHead plain = http2("http", "a.test:81");
  const Result<Target> target = parse_target(plain);
  ASSERT_TRUE(target);
  EXPECT_EQ(target->form, TargetForm::origin);
  EXPECT_EQ(target->authority, "a.test:81");
  EXPECT_EQ(target->path, "/x");
  const RequestHead tls = http2("https", "a.test");
  const Result<Target> secure = parse_target(tls);
  ASSERT_TRUE(secure);
  EXPECT_EQ(secure->form, TargetForm::absolute);
  EXPECT_EQ(secure->scheme, pool::Scheme::https);
  const RequestHead by_host = http2("http", "", "a.test");
  const Result<Target> named = parse_target(by_host);
  ASSERT_TRUE(named);
  EXPECT_EQ(named->authority, "a.test");
}

TEST(AnAuthorityThatContradictsHost, IsMisdirected) {
  const auto kind = [](const RequestHead& head) {
    const Result<Target> target = parse_target(head);
    return target ? FaultKind::internal : target.fault().kind;
  };
  EXPECT_EQ(kind(http2("http", "a.test", "b.test")), FaultKind::misdirected);
  EXPECT_EQ(kind(http2("http", "a.test", "A.test:80")), FaultKind::internal) << "the same place";
  EXPECT_EQ(kind(http2("https", "a.test:443", "a.test")), FaultKind::internal);
  EXPECT_EQ(kind(http2("http", "")), FaultKind::malformed_request);
  EXPECT_EQ(kind(http2("ftp", "a.test")), FaultKind::malformed_request);
  EXPECT_EQ(kind(http2("http", "u@a.test")), FaultKind::malformed_request);
}

TEST(AnAuthorityThatContradictsHost, IsMisdirectedInAConnect) {
  const auto kind = [](const char* authority, std::initializer_list<const char*> hosts) {
    RequestHead head;
    head.version = Version::http2;
    head.method = "CONNECT";
    head.target = head.authority = authority;
    for (const char* host : hosts) head.fields.add("host", host);
    const Result<Target> target = parse_target(head);
    return target ? FaultKind::internal : target.fault().kind;
  };
  EXPECT_EQ(kind("a.test:443", {}), FaultKind::internal);
  for (const char* same : {"a.test:443", "A.test.:443", "a.test", ""}) {
    EXPECT_EQ(kind("a.test:443", {same}), FaultKind::internal) << same;
  }
  for (const char* other : {"b.test:443", "b.test", "a.test:80", "a.test:443/x", "[::1]"}) {
    EXPECT_EQ(kind("a.test:443", {other}), FaultKind::misdirected) << other;
  }
  EXPECT_EQ(kind("[::1]:443", {"[0:0::1]"}), FaultKind::internal);
  EXPECT_EQ(kind("a.test:443", {"a.test:443", "a.test:443"}), FaultKind::malformed_request);
}

}  // namespace
}  // namespace carpool::proxy::http
