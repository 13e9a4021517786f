#include <gtest/gtest.h>

#include "tests/unit/http_h2_support.h"

namespace carpool::proxy::http {
namespace {

constexpr int kCalm = static_cast<int>(H2Error::enhance_your_calm);
constexpr int kProtocol = static_cast<int>(H2Error::protocol_error);

struct Server : End {
  explicit Server(const H2Options& options = {}) : End(H2Role::server, options) {
    receive(preface());
    pull();
  }
  std::string response_to(std::string_view bytes) {
    receive(bytes);
    return pull();
  }
};

TEST(AMalformedRequest, IsResetAndNeverReported) {
  Server server;
  List_ fields = get();
  fields.emplace_back("connection", "close");
  EXPECT_EQ(error_of(server.response_to(headers(1, fields)), 1), kProtocol);
  EXPECT_TRUE(server.streams.empty());
  server.response_to(headers(3, get()));
  EXPECT_EQ(server.streams.size(), 1U) << "the connection goes on";
}

TEST(ABodyOfAnotherLength, ThanAnnouncedIsMalformed) {
  List_ fields = get();
  fields.emplace_back("content-length", "3");
  for (const std::string_view body : {"four", "ab"}) {
    Server server;
    const std::string said = server.response_to(headers(1, fields, false) + data(1, body));
    EXPECT_EQ(error_of(said, 1), kProtocol) << body;
    EXPECT_TRUE(server.streams.at(1).closed);
    EXPECT_FALSE(server.streams.at(1).ended);
  }
}

TEST(Trailers, ThatDoNotEndTheStreamAreMalformed) {
  Server server;
  const std::string said = server.response_to(headers(1, get(), false) + headers(1, {{"x", "y"}}, false));
  EXPECT_EQ(error_of(said, 1), kProtocol);
}

TEST(Fields, InATunnelAreMalformedAndNoEndOfIt) {
  const List_ plain{{":method", "CONNECT"}, {":authority", "a.test:1"}};
  List_ extended = get();
  extended.front().second = "CONNECT";
  extended.emplace_back(":protocol", "websocket");
  for (const List_& fields : {plain, extended}) {
    Server server;
    const std::string said =
        server.response_to(headers(1, fields, false) + data(1, "x", false) + headers(1, {{"x", "y"}}));
    EXPECT_EQ(error_of(said, 1), kProtocol);
    EXPECT_TRUE(server.streams.at(1).closed);
    EXPECT_FALSE(server.streams.at(1).ended);
    EXPECT_EQ(server.streams.at(1).body, "x");
  }
}

TEST(ASessionThatItsOwnerEnds, HasNoConnectionErrorOfItsPeer) {
  Server late, wrong;
  late.session.terminate(H2Error::enhance_your_calm, H2Abuse::none);
  EXPECT_EQ(error_of(late.pull(), 0), kCalm);
  EXPECT_EQ(late.session.connection_error(), "");
  EXPECT_NE(error_of(wrong.response_to(frame(6, 0, 1, "01234567")), 0), -1);
  EXPECT_NE(wrong.session.connection_error(), "");
}

// One head in as many frames as it needs.
std::string long_headers(unsigned stream, const List_& fields) {
  const std::string bytes = block(fields);
  std::string sent = frame(1, kEndStream, stream, bytes.substr(0, 16000));
  for (std::size_t at = 16000; at < bytes.size(); at += 16000) {
    sent += frame(9, at + 16000 < bytes.size() ? 0 : kEndHeaders, stream, bytes.substr(at, 16000));
  }
  return sent;
}

TEST(AHeadOverALimit, IsReportedSoThatItCanBeAnswered) {
  Server server;
  List_ fields = get();
  const std::string value(10000, 'v');
  for (int i = 0; i < 7; ++i) fields.emplace_back("x", value);
  server.response_to(long_headers(1, fields));
  EXPECT_EQ(server.refused, FaultKind::head_too_large);
  EXPECT_FALSE(server.refused_grpc);
  EXPECT_EQ(server.session.abuse(), H2Abuse::none);
}

TEST(AHeadOverALimit, TellsAGrpcCallWhereverItsTypeStands) {
  const std::string value(10000, 'v');
  for (const std::size_t before : {0U, 7U}) {
    for (const bool grpc : {true, false}) {
      Server server;
      List_ fields = get();
      for (std::size_t i = 0; i < before; ++i) fields.emplace_back("x", value);
      fields.emplace_back("content-type", grpc ? "application/grpc" : "application/json");
      for (std::size_t i = before; i < 7; ++i) fields.emplace_back("x", value);
      server.response_to(long_headers(1, fields));
      EXPECT_EQ(server.refused, FaultKind::head_too_large);
      EXPECT_EQ(server.refused_grpc, grpc) << before;
    }
  }
}

// RFC 7541: one entry of 4,000 bytes, then one byte per repetition.
std::string bomb(unsigned stream, std::size_t times) {
  std::string out = block(get());
  std::string entry(1, '\x40');
  const std::string value(4000, 'v');
  entry += literal("x", value).substr(1);
  out += entry;
  out.append(times, '\xbe');
  return frame(1, kEndStream | kEndHeaders, stream, out);
}

TEST(AnHpackBomb, EndsTheSession) {
  Server server;
  EXPECT_EQ(error_of(server.response_to(bomb(1, 8000)), 0), kCalm);
  EXPECT_EQ(server.session.abuse(), H2Abuse::header_list);
  EXPECT_TRUE(server.streams.empty());
  EXPECT_TRUE(server.session.over());
}

TEST(AFloodOfContinuations, EndsTheSession) {
  Server server;
  std::string sent = frame(1, 0, 1, block(get()));
  for (int i = 0; i < 2000; ++i) sent += frame(9, 0, 1, literal("x", "y"));
  EXPECT_FALSE(server.receive(sent));
  EXPECT_EQ(error_of(server.pull(), 0), kCalm);
  EXPECT_EQ(server.session.abuse(), H2Abuse::continuations);
  EXPECT_TRUE(server.session.over());
}

// One read per byte: the number of CONTINUATION frames does not depend on it.
TEST(AHeadInSeveralFrames, MayArriveByteByByte) {
  constexpr unsigned kMost = 20;
  const std::string bytes = block(get());
  std::string sent = frame(1, kEndStream, 1, bytes.substr(0, 1));
  for (unsigned i = 1; i <= kMost; ++i) {
    sent += frame(9, i == kMost ? kEndHeaders : 0, 1, i == kMost ? bytes.substr(i) : bytes.substr(i, 1));
  }
  sent += frame(6, 0, 0, "01234567");
  Server server;
  for (const char byte : sent) ASSERT_TRUE(server.receive({&byte, 1}));
  EXPECT_TRUE(server.streams.at(1).ended);
  EXPECT_NE(server.pull().find(frame(6, 1, 0, "01234567")), std::string::npos);
}

TEST(AnIncompleteHead, BeganWithItsOwnFirstByte) {
  Server server;
  const std::string first = headers(1, get()), second = headers(3, get());
  EXPECT_EQ(kNever, server.session.head_began());
  server.receive(first.substr(0, 20));
  EXPECT_EQ(server.now, server.session.head_began());
  server.now += std::chrono::seconds(1);
  server.receive(first.substr(20) + second.substr(0, 20));
  EXPECT_EQ(server.now, server.session.head_began());
  server.receive(second.substr(20));
  EXPECT_EQ(kNever, server.session.head_began());
}

TEST(AFloodOfControlFrames, EndsTheSession) {
  const std::string kinds[] = {frame(4, 0, 0, ""), frame(6, 0, 0, "01234567"), frame(2, 0, 5, std::string(5, '\1')),
                               frame(8, 0, 0, number(1))};
  for (const std::string& one : kinds) {
    Server server;
    bool ended = false;
    for (int i = 0; i < 50 && !ended; ++i) {
      std::string many;
      for (int k = 0; k < 100; ++k) many += one;
      server.response_to(many);
      ended = server.session.over();
    }
    EXPECT_TRUE(ended) << static_cast<int>(one[3]);
    EXPECT_EQ(server.session.abuse(), H2Abuse::control) << static_cast<int>(one[3]);
  }
}

// A session that finishes its streams after the first ones is not idle.
TEST(AFloodOfGoaways, EndsTheSession) {
  const std::string one = frame(7, 0, 0, number(0) + number(0));
  Server server;
  server.receive(headers(1, get(), false));
  EXPECT_EQ(-1, error_of(server.response_to(one + one + one), 0));
  EXPECT_FALSE(server.session.over());
  std::string many;
  for (int k = 0; k < 300; ++k) many += one;
  EXPECT_EQ(kCalm, error_of(server.response_to(many), 0));
  EXPECT_EQ(H2Abuse::control, server.session.abuse());
}

TEST(AFloodOfEmptyFrames, EndsTheSession) {
  Server server;
  server.receive(headers(1, get(), false));
  std::string many;
  for (int k = 0; k < 3000; ++k) many += data(1, "", false);
  EXPECT_EQ(error_of(server.response_to(many), 0), kCalm);
  EXPECT_EQ(server.session.abuse(), H2Abuse::control);
}

TEST(PingsBetweenRequests, AreNoFlood) {
  Server server;
  for (unsigned i = 0; i < 5000; ++i) {
    const unsigned id = 2 * i + 1;
    server.response_to(frame(6, 0, 0, "01234567") + headers(id, get()));
    H2Fields fields;
    fields.add(":status", "200");
    server.session.respond(*server.streams.at(static_cast<StreamId>(id)).stream, fields, true);
    server.pull();
  }
  EXPECT_EQ(server.session.abuse(), H2Abuse::none);
}

// A peer whose application reads in small pieces returns both windows for each of them.
TEST(WindowUpdatesForDataThatWasSent, AreNoFlood) {
  for (const std::size_t piece : {std::size_t{512}, std::size_t{4096}}) {
    Server server;
    server.receive(headers(1, get()));
    H2Fields fields;
    fields.add(":status", "200");
    H2Stream& stream = *server.streams.at(1).stream;
    server.session.respond(stream, fields, false);
    const std::string bytes(16384, 'x');
    const std::string update = number(static_cast<std::uint32_t>(piece));
    for (int i = 0; i < 4000 && !server.session.over(); ++i) {
      server.session.body(stream, bytes);
      server.pull();
      std::string updates;
      for (std::size_t at = 0; at < bytes.size(); at += piece)
        updates += frame(8, 0, 0, update) + frame(8, 0, 1, update);
      server.receive(updates);
    }
    EXPECT_EQ(server.session.abuse(), H2Abuse::none) << piece;
    EXPECT_FALSE(server.session.over()) << piece;
  }
}

TEST(RapidReset, EndsTheSession) {
  Server server;
  unsigned id = 1;
  for (; id < 4000 && !server.session.over(); id += 2) {
    server.response_to(headers(id, get()) + frame(3, 0, id, number(8)));
  }
  EXPECT_EQ(server.session.abuse(), H2Abuse::resets);
  EXPECT_LT(id, 1200U);
}

TEST(RapidReset, OfAStreamThatIsClosedAlreadyEndsTheSession) {
  Server server;
  server.response_to(headers(1, get()) + frame(3, 0, 1, number(8)));
  server.now += std::chrono::seconds(2);
  int resets = 0;
  for (; resets < 4000 && !server.session.over(); ++resets) server.response_to(frame(3, 0, 1, number(8)));
  EXPECT_EQ(server.session.abuse(), H2Abuse::resets);
  EXPECT_LT(resets, 1200);
}

TEST(ClientsThatCancelNowAndThen, AreNoAttack) {
  Server server;
  for (unsigned i = 0; i < 3000; ++i) {
    server.now += std::chrono::milliseconds(25);
    server.response_to(headers(2 * i + 1, get()) + frame(3, 0, 2 * i + 1, number(8)));
  }
  EXPECT_EQ(server.session.abuse(), H2Abuse::none);
}

// An origin that does not respond makes its clients give up all their requests, each at its own deadline.
TEST(ClientsThatGiveUpAtTheirDeadline, AreNoAttackHoweverManyRequestsTheyHave) {
  const auto resets_after = [](std::chrono::milliseconds deadline) {
    Server server;
    for (unsigned id = 1; id < 10'000; id += 2) {  // 200 a second
      server.now += std::chrono::milliseconds(5);
      const unsigned late = id - 2 * static_cast<unsigned>(deadline.count() / 5);
      server.response_to(headers(id, get()) + (late < id ? frame(3, 0, late, number(8)) : ""));
    }
    return server.session.abuse();
  };
  EXPECT_EQ(resets_after(std::chrono::milliseconds(1000)), H2Abuse::none);
  EXPECT_EQ(resets_after(std::chrono::milliseconds(990)), H2Abuse::resets);
}

// Client actions that force us to reset a stream: a window overflow, a zero increment, data after the end.
TEST(MadeYouReset, EndsTheSession) {
  const auto provoke = [](unsigned id, int kind) {
    if (kind == 0) return frame(8, 0, id, number(0));
    if (kind == 1) return frame(8, 0, id, number(0x7fffffff));
    return data(id, "x");
  };
  for (int kind = 0; kind < 3; ++kind) {
    Server server;
    unsigned id = 1;
    for (; id < 4000 && !server.session.over(); id += 2) {
      server.response_to(headers(id, get()) + provoke(id, kind));
    }
    EXPECT_TRUE(server.session.over()) << kind;
    EXPECT_LT(id, 400U) << kind;
    EXPECT_TRUE(kind != 1 || server.session.abuse() == H2Abuse::resets) << "the others end it at once";
  }
}

TEST(StreamsBeyondTheLimit, AreRefused) {
  H2Options options;
  options.max_streams = 3;
  Server server(options);
  server.receive(frame(4, 1, 0, ""));  // the client knows our settings
  std::string four;
  for (unsigned id = 1; id < 9; id += 2) four += headers(id, get());
  const std::string said = server.response_to(four);
  EXPECT_EQ(server.streams.size(), 3U);
  EXPECT_NE(error_of(said, 7) == -1 && error_of(said, 0) == -1, true) << "refused, or the session ended";
}

// They are refused one by one, and the others are served. A client that goes on is an attacker.
TEST(StreamsBeyondTheLimit, EndNoSessionWhoseClientDoesNotKnowTheLimitYet) {
  Server server;
  const unsigned most = H2Options().max_streams, many = 3 * most - 50;
  std::string burst;
  for (unsigned n = 0; n < many; ++n) burst += headers(2 * n + 1, get());
  const std::string said = server.response_to(burst);
  EXPECT_EQ(most, server.streams.size());
  EXPECT_EQ(many - most, server.refused_streams) << "each is reported";
  EXPECT_FALSE(server.session.over());
  EXPECT_EQ(-1, error_of(said, 2 * most - 1));
  EXPECT_EQ(7, error_of(said, 2 * most + 1));
  EXPECT_EQ(7, error_of(said, 2 * many - 1));
  unsigned id = 2 * many + 1;
  for (; id < 4 * many && !server.session.over(); id += 2) server.response_to(headers(id, get()));
  EXPECT_TRUE(server.session.over());
  EXPECT_EQ(H2Abuse::resets, server.session.abuse());
}

TEST(ASession, UsesNoMoreMemoryThanItMay) {
  H2Options options;
  options.memory = 100 * 1024;
  options.max_streams = 5000;
  Server server(options);
  for (unsigned id = 1; id < 10000 && !server.session.over(); id += 2) {
    if (!server.receive(headers(id, get(), false))) break;
  }
  server.pull();
  EXPECT_EQ(server.session.abuse(), H2Abuse::memory);
  EXPECT_LE(server.session.library_memory(), options.memory);
}

TEST(AnOrigin, ThatPushesOrBreaksTheRulesIsRefused) {
  End client(H2Role::client);
  StreamRecord record;
  H2Fields fields;
  for (const auto& [name, value] : get()) fields.add(name, value);
  ASSERT_TRUE(client.session.request(fields, record, true, false));
  client.pull();
  client.receive(frame(4, 0, 0, "") + frame(4, 1, 0, ""));
  client.receive(headers(1, {{":status", "200"}, {"transfer-encoding", "chunked"}}, false));
  EXPECT_EQ(error_of(client.pull(), 1), kProtocol);
  EXPECT_TRUE(record.closed);
  client.receive(frame(5, kEndHeaders, 1, number(2) + block(get())));
  EXPECT_EQ(error_of(client.pull(), 0), kProtocol);
}

TEST(EmptyContinuations, OfManyRequestsEndTheSession) {
  Server server;
  const std::string bytes = block(get());
  int requests = 0;
  for (; requests < 2000 && server.session.abuse() == H2Abuse::none; ++requests) {
    const auto stream = static_cast<unsigned>(2 * requests + 1);
    std::string sent = frame(1, kEndStream, stream, bytes);
    for (int i = 0; i < 6; ++i) sent += frame(9, 0, stream, "");
    server.response_to(sent + frame(9, kEndHeaders, stream, ""));
    StreamRecord& record = server.streams[static_cast<StreamId>(stream)];
    if (record.stream != nullptr) server.session.reset(*record.stream, H2Error::cancel);
    server.pull();
  }
  EXPECT_EQ(server.session.abuse(), H2Abuse::control);
  EXPECT_GT(requests, 100);
}

TEST(Resets, ArePaidBackByStreamsThatWereServed) {
  Server server;
  H2Fields ok;
  ok.add(":status", "200");
  for (unsigned n = 0; n < 1000; ++n) {
    const unsigned served = 4 * n + 1, reset = served + 2;
    server.response_to(headers(served, get()));
    StreamRecord& record = server.streams[static_cast<StreamId>(served)];
    ASSERT_NE(record.stream, nullptr) << n;
    server.session.respond(*record.stream, ok, true);
    server.pull();
    ASSERT_TRUE(record.closed);
    server.response_to(headers(reset, get(), false) + frame(3, 0, reset, number(8)));
    ASSERT_EQ(server.session.abuse(), H2Abuse::none) << n;
  }
}

}  // namespace
}  // namespace carpool::proxy::http
