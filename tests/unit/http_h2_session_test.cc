#include <gtest/gtest.h>

#include "tests/unit/http_h2_pair.h"

namespace carpool::proxy::http {
namespace {

constexpr std::size_t kBig = 300000;

TEST(AnH2Session, CarriesARequestAndItsResponse) {
  Pair pair;
  StreamRecord& asked = pair.ask();
  pair.exchange_more();
  StreamRecord& served = pair.server.streams.at(1);
  EXPECT_EQ(served.request.target, "/");
  EXPECT_TRUE(served.ended);
  pair.server.session.respond(*served.stream, fields_of({{":status", "200"}, {"x-a", "b"}}), false);
  pair.server.session.body(*served.stream, "hello");
  pair.server.session.end(*served.stream);
  pair.exchange_more();
  EXPECT_EQ(asked.response.status, 200);
  EXPECT_EQ(asked.response.fields.get("x-a"), "b");
  EXPECT_EQ(asked.body, "hello");
  EXPECT_TRUE(asked.ended);
  EXPECT_TRUE(asked.closed);
  EXPECT_EQ(asked.reason, H2Error::no_error);
  EXPECT_TRUE(served.closed);
  EXPECT_EQ(pair.server.session.streams(), 0U);
}

TEST(AnH2Session, PassesInterimResponsesAndTrailers) {
  Pair pair;
  StreamRecord& asked = pair.ask(false);
  pair.exchange_more();
  StreamRecord& served = pair.server.streams.at(1);
  EXPECT_FALSE(served.ended);
  pair.server.session.inform(*served.stream, fields_of({{":status", "103"}, {"link", "x"}}));
  pair.client.session.body(*asked.stream, "up");
  Fields sums;
  sums.add("X-Sum", "1");
  pair.client.session.end(*asked.stream, sums);
  pair.exchange_more();
  EXPECT_EQ(served.body, "up");
  EXPECT_EQ(served.trailers.get("x-sum"), "1");
  EXPECT_TRUE(served.ended);
  EXPECT_EQ(asked.interim, std::vector<int>{103});
  pair.server.session.respond(*served.stream, fields_of({{":status", "200"}}), false);
  Fields status;
  status.add("grpc-status", "0");
  pair.server.session.end(*served.stream, status);
  pair.exchange_more();
  EXPECT_EQ(asked.trailers.get("grpc-status"), "0");
  EXPECT_TRUE(asked.closed);
}

TEST(ABody, WaitsForTheWindowUntilItsReceiverGivesRoomBack) {
  Pair pair;
  StreamRecord& asked = pair.ask();
  pair.exchange_more();
  StreamRecord& served = pair.server.streams.at(1);
  const std::string big(kBig, 'x');
  pair.server.session.respond(*served.stream, fields_of({{":status", "200"}}), false);
  pair.server.session.body(*served.stream, big);
  pair.server.session.end(*served.stream);
  pair.exchange_more();
  EXPECT_EQ(asked.body.size(), 65535U) << "one stream's window";
  EXPECT_EQ(served.stream->backlog(), kBig - 65535);
  EXPECT_EQ(served.sent, 65535U);
  std::size_t given = 0;
  while (!asked.closed && given < asked.body.size()) {
    const std::size_t more = asked.body.size() - given;
    given += more;
    pair.client.session.consume(*asked.stream, more);
    pair.exchange_more();
  }
  EXPECT_EQ(asked.body, big);
  EXPECT_TRUE(asked.ended);
}

TEST(AStreamsWindow, IsWiderFromItsBeginningWhereThatWasAskedBehindTheRequest) {
  H2Options options;
  options.stream_window = 8192;
  Pair pair(options);
  StreamRecord& narrow = pair.ask();
  StreamRecord& wide = pair.ask();
  pair.client.session.widen(*wide.stream, 32768);
  pair.exchange_more();
  for (auto& [id, served] : pair.server.streams) {
    pair.server.session.respond(*served.stream, fields_of({{":status", "200"}}), false);
    pair.server.session.body(*served.stream, std::string(kBig, 'x'));
  }
  pair.exchange_more();
  EXPECT_EQ(narrow.body.size(), 8192U);
  EXPECT_EQ(wide.body.size(), 32768U);
  pair.client.session.widen(*narrow.stream, 32768);
  pair.exchange_more();
  EXPECT_EQ(narrow.body.size(), 32768U);
}

std::string without_acks(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const auto byte = [&bytes](std::size_t at) {
      return static_cast<std::size_t>(static_cast<unsigned char>(bytes[at]));
    };
    const std::size_t size = 9 + (byte(0) << 16 | byte(1) << 8 | byte(2));
    if (byte(3) != 4 || byte(4) != 1) out.append(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return out;
}

// Receives response bytes, each credited at once, from a peer that keeps to our SETTINGS but acknowledges them in round
// `ack`, if ever. Returns the bytes received.
std::size_t arrive(std::uint32_t widen, int ack) {
  H2Options options;
  options.stream_window = 8192;
  options.shared_window_is_free = true;
  End client(H2Role::client, options), server(H2Role::server);
  server.receive(client.pull());
  client.receive(without_acks(server.pull()));
  StreamRecord record;
  record.stream = *client.session.request(fields_of(get()), record, true, false);
  if (widen != 0) client.session.widen(*record.stream, widen);
  server.receive(client.pull());
  StreamRecord& served = server.streams.at(1);
  server.session.respond(*served.stream, fields_of({{":status", "200"}}), false);
  server.session.body(*served.stream, std::string(kBig, 'x'));
  std::size_t given = 0;
  for (int round = 0; round < 200; ++round) {
    if (round == ack) client.receive(frame(4, 1, 0, ""));
    client.receive(without_acks(server.pull()));
    client.session.consume(*record.stream, record.body.size() - given);
    given = record.body.size();
    server.receive(client.pull());
  }
  return given;
}

TEST(AStreamsWindow, IsGivenBackHoweverLateThePeerAcknowledgesOurSettings) {
  for (const std::uint32_t widen : {0U, 32768U, 262144U}) {
    for (const int ack : {0, 2, 1000}) EXPECT_EQ(arrive(widen, ack), kBig) << widen << ", " << ack;
  }
}

TEST(AReset, IsTheLastEventOfAStream) {
  Pair pair;
  StreamRecord& asked = pair.ask(false);
  pair.exchange_more();
  StreamRecord& served = pair.server.streams.at(1);
  pair.client.session.reset(*asked.stream, H2Error::cancel);
  pair.exchange_more();
  EXPECT_TRUE(served.closed);
  EXPECT_EQ(served.reason, H2Error::cancel);
  EXPECT_FALSE(asked.closed) << "who resets has forgotten it";
  EXPECT_EQ(pair.client.session.streams(), 0U);
}

TEST(ARequest, TakenBackBeforeItLeftNeverExisted) {
  Pair pair;
  StreamRecord& asked = pair.ask();
  pair.client.session.reset(*asked.stream, H2Error::cancel);
  pair.exchange_more();
  EXPECT_TRUE(pair.server.streams.empty());
  EXPECT_EQ(pair.client.session.streams(), 0U);
}

TEST(AResponse, ThatEndsBeforeItsRequestClosesTheStreamWithoutAnError) {
  Pair pair;
  StreamRecord& asked = pair.ask(false);
  pair.exchange_more();
  StreamRecord& served = pair.server.streams.at(1);
  pair.server.session.respond(*served.stream, fields_of({{":status", "413"}}), true);
  pair.server.session.leave(*served.stream);
  pair.exchange_more();
  EXPECT_EQ(asked.response.status, 413);
  EXPECT_TRUE(asked.ended);
  EXPECT_TRUE(asked.closed);
  EXPECT_EQ(asked.reason, H2Error::no_error);
}

TEST(ACutResponse, IsDeliveredAsFarAsItCameAndThenReset) {
  constexpr std::size_t kMore = 100'000;  // than any window
  for (const std::size_t size : {std::size_t{0}, std::size_t{10}, std::size_t{65535}, kMore}) {
    Pair pair;
    StreamRecord& asked = pair.ask();
    pair.exchange_more();
    StreamRecord& served = pair.server.streams.at(1);
    pair.server.session.inform(*served.stream, fields_of({{":status", "103"}}));
    pair.server.session.respond(*served.stream, fields_of({{":status", "200"}}), false);
    pair.server.session.body(*served.stream, std::string(size, 'x'));
    pair.server.session.cut(*served.stream, H2Error::internal_error);
    pair.exchange_more();
    if (size == kMore) {
      EXPECT_FALSE(asked.closed);
      pair.client.session.consume(*asked.stream, asked.body.size());
      pair.exchange_more();
    }
    EXPECT_EQ(asked.response.status, 200) << size;
    EXPECT_EQ(asked.body.size(), size);
    EXPECT_FALSE(asked.ended);
    EXPECT_TRUE(asked.closed) << size;
    EXPECT_EQ(asked.reason, H2Error::internal_error);
    EXPECT_FALSE(served.closed) << "its owner has forgotten it";
    EXPECT_EQ(pair.server.session.streams(), 0U);
  }
}

TEST(ACutResponse, ThatHadAllBeenSentIsResetAtOnce) {
  Pair pair;
  StreamRecord& asked = pair.ask(false);
  pair.exchange_more();
  StreamRecord& served = pair.server.streams.at(1);
  pair.server.session.respond(*served.stream, fields_of({{":status", "200"}}), false);
  pair.server.session.body(*served.stream, std::string(65535, 'x'));  // the window is used up
  pair.exchange_more();
  pair.server.session.cut(*served.stream, H2Error::internal_error);
  pair.exchange_more();
  EXPECT_EQ(asked.body.size(), 65535U);
  EXPECT_TRUE(asked.closed);
  EXPECT_EQ(asked.reason, H2Error::internal_error);
}

TEST(Goaway, RefusesLaterStreamsAndLetsTheOthersFinish) {
  Pair pair;
  StreamRecord& first = pair.ask();
  pair.exchange_more();
  pair.server.session.goaway(H2Error::no_error);
  StreamRecord& late = pair.ask();
  const std::string crossing = pair.client.pull();
  pair.exchange_more();
  EXPECT_EQ(pair.client.goaway.first, 1);
  EXPECT_TRUE(late.closed);
  EXPECT_EQ(late.reason, H2Error::refused_stream);
  EXPECT_FALSE(pair.client.session.accepts_requests());
  StreamRecord& served = pair.server.streams.at(1);
  pair.server.session.respond(*served.stream, fields_of({{":status", "200"}}), true);
  pair.exchange_more();
  EXPECT_EQ(first.response.status, 200);
  EXPECT_TRUE(pair.server.session.over());
}

TEST(AnAnnouncedShutdown, RefusesNothingYet) {
  Pair pair;
  pair.server.session.announce_shutdown();
  pair.exchange_more();
  EXPECT_EQ(pair.client.goaway.first, 0x7fffffff);
  EXPECT_FALSE(pair.server.session.over());
}

TEST(APing, ComesBack) {
  Pair pair;
  pair.client.session.ping(42);
  pair.exchange_more();
  EXPECT_EQ(pair.client.pong, 42U);
}

TEST(ThePeersSettings, AreReported) {
  H2Options options;
  options.max_streams = 7;
  Pair pair(options);
  EXPECT_EQ(pair.client.peer.max_streams, 7U);
  EXPECT_TRUE(pair.client.peer.extended_connect);
}

TEST(StreamsOfOneSession, AreServedInTurn) {
  H2Options options;
  options.window = 1 << 20;
  options.stream_window = 1 << 20;
  Pair pair(options);
  StreamRecord& first = pair.ask();
  StreamRecord& second = pair.ask();
  pair.exchange_more();
  const std::string big(kBig, 'x');
  for (auto& [id, served] : pair.server.streams) {
    pair.server.session.respond(*served.stream, fields_of({{":status", "200"}}), false);
    pair.server.session.body(*served.stream, big);
  }
  pair.client.receive(pair.server.pull(200000));
  EXPECT_GT(first.body.size(), 80000U);
  EXPECT_GT(second.body.size(), 80000U);
}

TEST(Pull, StopsAtTheSpaceOfItsOwner) {
  H2Options options;
  options.window = 1 << 20;
  options.stream_window = 1 << 20;
  Pair pair(options);
  pair.ask();
  pair.exchange_more();
  StreamRecord& served = pair.server.streams.at(1);
  pair.server.session.respond(*served.stream, fields_of({{":status", "200"}}), false);
  pair.server.session.body(*served.stream, std::string(kBig, 'x'));
  const std::string some = pair.server.pull(40000);
  EXPECT_GE(some.size(), 40000U);
  EXPECT_LT(some.size(), 40000U + 20000U);
  EXPECT_TRUE(pair.server.session.wants_pull());
}

// A serialized frame head may wait for room in its owner's write buffer; its stream may be reset meanwhile.
TEST(AReset, TakesTheFrameAlongThatHadNoRoomYet) {
  H2Options options;
  options.window = 1 << 20;
  options.stream_window = 1 << 20;
  Pair pair(options);
  StreamRecord& dropped = pair.ask(false);
  StreamRecord& kept = pair.ask(false);
  pair.exchange_more();
  pair.client.session.body(*dropped.stream, std::string(kBig, 'x'));
  pair.client.session.body(*kept.stream, std::string(kBig, 'y'));
  for (std::size_t most = 1; most < 100000; most += 16384) {
    std::string bytes = pair.client.pull(most);
    pair.server.receive(bytes);
  }
  pair.client.session.reset(*dropped.stream, H2Error::cancel);
  pair.client.session.end(*kept.stream);
  const std::string rest = pair.client.pull();
  for (const Frame& one : frames(rest))
    EXPECT_TRUE(one.type == 3 || one.stream == 3) << one.type << " on " << one.stream;
  EXPECT_TRUE(pair.server.receive(rest));
  EXPECT_EQ(pair.server.streams.at(3).body, std::string(kBig, 'y'));
  EXPECT_TRUE(pair.server.streams.at(3).ended);
}

TEST(AnIdleSession, OwnsLittle) {
  Pair pair;
  for (int i = 0; i < 50; ++i) {
    pair.ask();
    pair.exchange_more();
    StreamRecord& served = pair.server.streams.at(1 + 2 * i);
    pair.server.session.respond(*served.stream, fields_of({{":status", "200"}}), true);
    pair.exchange_more();
  }
  pair.server.session.release_memory();
  EXPECT_LT(pair.server.session.library_memory(), 32U * 1024);
  RecordProperty("bytes_at_rest", static_cast<int>(pair.server.session.library_memory()));
}

TEST(ARequest, ThatGoawayForestalledWasNeverProcessed) {
  Pair pair;
  StreamRecord& asked = pair.ask();  // its head is queued
  pair.client.receive(frame(7, 0, 0, number(0) + number(0)));
  pair.client.pull();
  EXPECT_TRUE(asked.closed);
  EXPECT_EQ(asked.reason, H2Error::refused_stream);
  EXPECT_TRUE(pair.server.streams.empty());
}

TEST(AResponse, ThatHasLeftBeforeItsOwnerClosesTheStreamWithoutAnError) {
  Pair pair;
  StreamRecord& asked = pair.ask(false);
  pair.exchange_more();
  StreamRecord& served = pair.server.streams.at(1);
  pair.server.session.respond(*served.stream, fields_of({{":status", "200"}}), true);
  pair.exchange_more();
  ASSERT_FALSE(asked.closed);
  pair.server.session.leave(*served.stream);
  pair.exchange_more();
  EXPECT_TRUE(asked.closed);
  EXPECT_EQ(asked.reason, H2Error::no_error);
}

TEST(AStream, WhoseOwnerLeavesBeforeItsResponseIsReset) {
  Pair pair;
  StreamRecord& asked = pair.ask();
  pair.exchange_more();
  pair.server.session.leave(*pair.server.streams.at(1).stream);
  pair.exchange_more();
  EXPECT_TRUE(asked.closed);
  EXPECT_EQ(asked.reason, H2Error::internal_error);
}

TEST(TrailersOfAStream, AreNotThoseOfALaterOne) {
  Pair pair;
  Fields sums;
  sums.add("x-sum", "1");
  for (const bool trailers : {true, false}) {
    StreamRecord& asked = pair.ask();
    pair.exchange_more();
    StreamRecord& served = std::prev(pair.server.streams.end())->second;
    pair.server.session.respond(*served.stream, fields_of({{":status", "200"}}), false);
    pair.server.session.body(*served.stream, "x");
    trailers ? pair.server.session.end(*served.stream, sums) : pair.server.session.end(*served.stream);
    pair.exchange_more();
    ASSERT_TRUE(asked.closed);
    EXPECT_EQ(asked.trailers.get("x-sum"), trailers ? "1" : "");
  }
}

TEST(ASessionThatEnds, TakesNoRequests) {
  Pair pair;
  EXPECT_TRUE(pair.client.session.accepts_requests());
  pair.client.session.terminate(H2Error::protocol_error, H2Abuse::none);
  EXPECT_FALSE(pair.client.session.accepts_requests());
}

TEST(OurSettings, AreAcknowledgedOnce) {
  const Pair pair;
  EXPECT_EQ(pair.client.settings_acks, 1);
  EXPECT_EQ(pair.server.settings_acks, 1);
}

// Returns the sum of the WINDOW_UPDATEs of a stream in these bytes, and their number.
std::pair<unsigned, unsigned> updates(std::string_view bytes, unsigned stream) {
  unsigned sum = 0, count = 0;
  for (const Frame& one : frames(bytes)) {
    if (one.type != 8 || one.stream != stream) continue;
    sum += code(one);
    ++count;
  }
  return {sum, count};
}

TEST(TheWindowOfASession, IsWholeAgainWhenAStreamClosesThatTookNothing) {
  End server(H2Role::server);
  server.receive(preface());
  server.pull();
  unsigned given = 0;
  const std::string piece(16384, 'x');
  for (unsigned id = 1; id < 101; id += 2) {  // 800 KiB, of a window of 256 KiB
    ASSERT_TRUE(server.receive(headers(id, get(), false) + data(id, piece, false) + frame(3, 0, id, number(8))));
    ASSERT_TRUE(server.streams.at(static_cast<StreamId>(id)).closed);
    given += updates(server.pull(), 0).first;
  }
  EXPECT_GT(given, 600'000U);
}

TEST(AStreamsWindow, IsGivenBackInFewFramesAndWithItsPadding) {
  H2Options options;
  options.shared_window_is_free = true;
  End client(H2Role::client, options);
  client.pull();
  client.receive(frame(4, 0, 0, ""));
  StreamRecord record;
  record.stream = *client.session.request(fields_of(get()), record, true, false);
  client.pull();
  client.receive(headers(1, {{":status", "200"}}, false));
  const std::string padded = std::string(1, '\x64') + std::string(900, 'x') + std::string(100, '\0');
  unsigned given = 0, times = 0;
  for (int n = 0; n < 500; ++n) {
    client.receive(frame(0, 8, 1, padded));
    ASSERT_FALSE(record.closed) << "the window is used up";
    client.session.consume(*record.stream, 900);
    const auto [bytes, count] = updates(client.pull(), 1);
    given += bytes;
    times += count;
  }
  EXPECT_EQ(record.body.size(), 450'000U);
  EXPECT_GT(given, 500U * 1001 - 65'535) << "else the peer runs out of window";
  EXPECT_LE(given, 500U * 1001);
  EXPECT_LT(times, 30U);
}

TEST(AStreamsWindow, OfAnUploadIsGivenBackInFewFrames) {
  H2Options options;
  options.shared_window_is_free = true;
  End server(H2Role::server, options);
  server.receive(preface() + headers(1, get(), false));
  server.pull();
  StreamRecord& upload = server.streams.at(1);
  const std::string piece(1000, 'x');
  unsigned given = 0, times = 0;
  for (int n = 0; n < 500; ++n) {
    ASSERT_TRUE(server.receive(data(1, piece, false)));
    ASSERT_FALSE(upload.closed) << "the window is used up";
    server.session.consume(*upload.stream, piece.size());
    const auto [bytes, count] = updates(server.pull(), 1);
    given += bytes;
    times += count;
  }
  EXPECT_EQ(upload.body.size(), 500'000U);
  EXPECT_GT(given, 500'000U - 65'535) << "else the peer runs out of window";
  EXPECT_LT(times, 30U);
}

TEST(ResponsesWithoutAnOwner, AreResetAloneIfTheyWaitForAWindow) {
  End server(H2Role::server);
  server.receive(std::string(kH2Preface) + frame(4, 0, 0, std::string("\0\x04", 2) + number(0)) + headers(1, get()) +
                 headers(3, get()) + headers(5, get()));
  server.pull();
  const H2Fields fields = fields_of({{":status", "200"}});
  for (const StreamId id : {1, 3, 5}) {
    H2Stream& stream = *server.streams.at(id).stream;
    server.session.respond(stream, fields, false);
    if (id != 5) server.session.body(stream, "waits");
    server.session.end(stream);
    if (id != 3) server.session.leave(stream);
  }
  server.pull();
  server.session.reset_detached(H2Error::cancel);
  const std::string said = server.pull();
  EXPECT_EQ(error_of(said, 1), static_cast<int>(H2Error::cancel));
  EXPECT_EQ(error_of(said, 3), -1) << "it has an owner";
  EXPECT_EQ(error_of(said, 5), static_cast<int>(H2Error::cancel)) << "its end waits";
}

}  // namespace
}  // namespace carpool::proxy::http
