// Unit tests of the trailers that an HTTP/2 session sends: they are not flow-controlled, so they wait for a window only
// behind bytes that do.
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/http_h2_pair.h"

namespace carpool::proxy::http::trailers {
namespace {

constexpr unsigned kData = 0, kHeaders = 1;

// SETTINGS_INITIAL_WINDOW_SIZE.
std::string window(std::uint32_t size) {
  return frame(4, 0, 0, std::string{'\0', '\4'} + number(size));
}

// The types of the frames of the stream, and whether the last one ends it.
std::string frames_of(std::string_view bytes, unsigned stream) {
  std::string all;
  bool ended = false;
  for (const Frame& one : frames(bytes)) {
    if (one.stream != stream || (one.type != kData && one.type != kHeaders)) continue;
    all += one.type == kData ? "data " + one.payload + " " : "fields ";
    ended = (one.flags & kEndStream) != 0;
  }
  return all + (ended ? "end" : "");
}

Fields status() {
  Fields fields;
  fields.add("grpc-status", "5");
  return fields;
}

struct Asked : End {
  explicit Asked(std::uint32_t size) : End(H2Role::server) {
    receive(std::string(kH2Preface) + window(size) + headers(1, get()));
    pull();
  }
  H2Stream& stream() { return *streams.at(1).stream; }
  void respond() { session.respond(stream(), fields_of({{":status", "200"}}), false); }
};

TEST(Trailers, OfAResponseWithoutBytesNeedNoWindow) {
  Asked asked(0);
  asked.respond();
  asked.session.end(asked.stream(), status());
  EXPECT_EQ("fields fields end", frames_of(asked.pull(), 1));
  EXPECT_TRUE(asked.streams.at(1).closed);
  EXPECT_EQ(0U, asked.session.streams());
}

TEST(Trailers, OfAResponseWithoutBytesFollowItsHeadAlsoLater) {
  Asked asked(0);
  asked.respond();
  EXPECT_EQ("fields ", frames_of(asked.pull(), 1));
  asked.session.end(asked.stream(), status());
  EXPECT_EQ("fields end", frames_of(asked.pull(), 1));
  EXPECT_TRUE(asked.streams.at(1).closed);
}

TEST(Trailers, BehindBytesThatFillTheWindowNeedNoMoreOfIt) {
  Asked asked(5);
  asked.respond();
  asked.session.body(asked.stream(), "hello");
  EXPECT_EQ("fields data hello ", frames_of(asked.pull(), 1));
  asked.session.end(asked.stream(), status());
  EXPECT_EQ("fields end", frames_of(asked.pull(), 1));
}

TEST(Trailers, ThatAreEmptyAreNoFrame) {
  Asked asked(5);
  asked.respond();
  asked.session.end(asked.stream(), Fields());
  EXPECT_EQ("fields data  end", frames_of(asked.pull(), 1));
}

// The library's memory is for heads, which nothing stops.
TEST(Trailers, ThatAreNotReadDoNotUseUpTheMemory) {
  H2Options options;
  options.memory = 1U << 20;
  End server(H2Role::server, options);
  server.receive(preface());
  server.pull();
  Fields large;
  large.add("x-large", std::string(60'000, 'x'));
  for (unsigned id = 1; id < 200; id += 2) {
    server.receive(headers(id, get()));
    H2Stream& stream = *server.streams.at(static_cast<StreamId>(id)).stream;
    server.session.respond(stream, fields_of({{":status", "200"}}), false);
    server.session.end(stream, large);
  }
  EXPECT_LT(server.session.library_memory(), options.memory);
  const std::string sent = server.pull(100U << 20);
  for (unsigned id = 1; id < 200; id += 2) EXPECT_TRUE(frames_of(sent, id).ends_with("end")) << id;
  EXPECT_EQ(H2Abuse::none, server.session.abuse());
}

TEST(Trailers, FollowAHeadThatWaitsForMemoryWhateverItsWindow) {
  H2Options options;
  options.memory = 1U << 20;
  const std::string large(60'000, 'x');
  for (const std::uint32_t size : {0U, 65535U}) {
    End server(H2Role::server, options);
    server.receive(std::string(kH2Preface) + window(size));
    server.pull();
    for (unsigned id = 1; id < 60; id += 2) {
      server.receive(headers(id, get(), false));
      H2Stream& stream = *server.streams.at(static_cast<StreamId>(id)).stream;
      server.session.respond(stream, fields_of({{":status", "200"}, {"x-large", large}}), false);
      server.session.end(stream, status());
    }
    const std::string sent = server.pull(100U << 20);
    for (unsigned id = 1; id < 60; id += 2) {
      EXPECT_EQ("fields fields end", frames_of(sent, id)) << id;
      EXPECT_EQ(-1, error_of(sent, id)) << id;
    }
  }
}

TEST(Trailers, WaitForTheBytesBeforeThem) {
  Asked asked(2);
  asked.respond();
  asked.session.body(asked.stream(), "hello");
  asked.session.end(asked.stream(), status());
  EXPECT_EQ("fields data he ", frames_of(asked.pull(), 1));
  asked.receive(frame(8, 0, 1, number(2)));
  EXPECT_EQ("data ll ", frames_of(asked.pull(), 1));
  asked.receive(frame(8, 0, 1, number(1)));
  EXPECT_EQ("data o fields end", frames_of(asked.pull(), 1));
}

// The client may still be sending.
TEST(Trailers, OfAnOpenRequestAreSentOnce) {
  End server(H2Role::server);
  server.receive(preface() + headers(1, get(), false));
  server.pull();
  H2Stream& stream = *server.streams.at(1).stream;
  server.session.respond(stream, fields_of({{":status", "200"}}), false);
  server.session.body(stream, "hello");
  server.session.end(stream, status());
  const std::string sent = server.pull();
  EXPECT_EQ("fields data hello fields end", frames_of(sent, 1));
  EXPECT_EQ(-1, error_of(sent, 1));
}

TEST(Trailers, OfARequestWithoutBytesNeedNoWindow) {
  for (const bool later : {true, false}) {
    SCOPED_TRACE(later);
    End client(H2Role::client);
    client.receive(window(0));
    StreamRecord record;
    Result<H2Stream*> stream = client.session.request(fields_of(get()), record, false, false);
    ASSERT_TRUE(stream);
    std::string sent = later ? client.pull() : "";
    client.session.end(**stream, status());
    sent += client.pull();
    sent.erase(0, kH2Preface.size());
    EXPECT_EQ("fields fields end", frames_of(sent, 1));
    EXPECT_EQ(-1, error_of(sent, 1));
    client.receive(headers(1, {{":status", "200"}}));
    EXPECT_TRUE(record.ended && record.closed);
    EXPECT_EQ(0U, client.session.streams());
  }
}

}  // namespace
}  // namespace carpool::proxy::http::trailers
