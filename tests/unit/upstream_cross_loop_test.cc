// Unit tests of streams on a session of another loop: what crosses, how much is held, and what is no longer sent.
#include <list>

#include "tests/unit/heap_in_use.h"
#include "tests/unit/upstream_obedient_origin.h"

namespace carpool::test {
namespace {

using proxy::kHighWatermark;
using proxy::http::Framing;
using Origin = ObedientOrigin;

class AcrossLoops : public ObedientSession {
 protected:
  // Origin whose streams take `window` bytes before it consumes any.
  static proxy::http::H2Options with_window(std::uint32_t window) {
    proxy::http::H2Options options;
    options.stream_window = window;
    options.window = 4 * 1024 * 1024;
    return options;
  }
  void consume(Origin::Request& request, std::size_t bytes) {
    origin_->session().consume(*request.stream, bytes);
    travel();
  }
  // The origin responds with so many bytes; the client reads nothing. Returns the bytes that the origin could send.
  std::size_t sent_to_nobody(std::size_t size) {
    far_.wants = false;
    far_.ask("GET");
    travel();
    origin_->respond("200", false);
    origin_->send_body(origin_->newest(), size);
    travel();
    return origin_->newest().sent;
  }
  void read_to_the_end(std::size_t size) {
    Origin::Request& request = origin_->newest();
    origin_->session().end(*request.stream);
    for (int rounds = 0; rounds < 100 && far_.ends == 0; ++rounds) {
      far_.take();
      travel();
    }
    EXPECT_EQ(far_.ends, 1U);
    EXPECT_EQ(far_.received, size);
  }
};

TEST_F(AcrossLoops, AHeadRequestIsAnsweredWithoutABody) {
  establish();
  far_.ask("HEAD");
  travel();
  origin_->respond("200", true, "1000");
  travel();
  EXPECT_EQ(far_.ends, 1U);
  EXPECT_EQ(far_.failures, 0U) << far_.why;
  EXPECT_EQ(far_.response.fields.get("content-length"), "1000");
}

TEST_F(AcrossLoops, AHeadRequestIsNotGivenALength) {
  establish();
  far_.ask("HEAD");
  travel();
  origin_->respond("200", true);
  travel();
  EXPECT_EQ(far_.ends, 1U);
  EXPECT_EQ(far_.response.framing, Framing::none);
}

TEST_F(AcrossLoops, AResponseWithoutContentEndsWithItsHead) {
  establish();
  far_.ask("GET");
  travel();
  origin_->respond("204", true);
  travel();
  EXPECT_EQ(far_.ends, 1U);
  EXPECT_EQ(far_.response.status, 204);
  EXPECT_EQ(far_.response.framing, Framing::none);
  EXPECT_EQ(far_.received, 0U);
}

TEST_F(AcrossLoops, ARequestWithoutABodyIsOneFrame) {
  establish();
  for (const Framing framing : {Framing::none, Framing::length}) {  // of length 0
    origin_->frames.clear();
    far_.ask("POST", framing);
    travel();
    EXPECT_EQ(origin_->count(Origin::kHeaders, Origin::kEndStream), 1U);
    EXPECT_EQ(origin_->count(Origin::kData), 0U);
    origin_->respond("200", true);
    travel();
    EXPECT_EQ(far_.ends, 1U);
  }
}

TEST_F(AcrossLoops, ASlowClientThatMayBufferMoreHoldsLittle) {
  establish();
  constexpr std::size_t kSize = 400'000;
  const std::size_t sent = sent_to_nobody(kSize);
  EXPECT_GT(sent, 32'000U) << "it is gathered while the client is slow";
  EXPECT_LT(sent, 80'000U);
  read_to_the_end(kSize);
}

TEST_F(AcrossLoops, ASlowClientThatMayNotBufferMoreHoldsOneNarrowWindow) {
  establish();
  constexpr std::size_t kSize = 400'000;
  far_.more = false;
  EXPECT_EQ(sent_to_nobody(kSize), proxy::kNarrowWindow);
  read_to_the_end(kSize);
}

TEST_F(AcrossLoops, AClientThatMayBufferMoreLaterIsSentMore) {
  establish();
  far_.more = false;
  constexpr std::size_t kSize = 400'000;
  ASSERT_EQ(sent_to_nobody(kSize), proxy::kNarrowWindow);
  far_.more = true;
  far_.take();
  far_.wants = false;
  travel();
  EXPECT_GT(origin_->newest().sent, 32'000U);
  read_to_the_end(kSize);
}

TEST_F(AcrossLoops, APartThatWasDeliveredToASlowClientIsNotKept) {
  constexpr std::size_t kClients = 50;
  establish();
  std::list<Asker> askers;
  for (std::size_t n = 0; n < kClients; ++n) {
    Asker& asker = askers.emplace_back(world_, LoopId{1});
    asker.more = false;
    asker.most = 1;  // it wants the head, and no more once a part of the body came
    asker.ask("GET");
    turn(0);
    origin_->receive(wire().deliver_up(SIZE_MAX), world_.now);
    origin_->respond("200", false);
    origin_->send_body(origin_->newest(), proxy::kNarrowWindow);
  }
  answer();
  const std::int64_t before = heap_in_use();
  for (int turns = 0; turns < 5; ++turns) {
    turn(0);
    turn(1);
  }
  const std::int64_t grown = heap_in_use() - before;
  std::size_t received = 0;
  for (Asker& asker : askers) received += asker.received;
  EXPECT_GT(received, kClients * proxy::kNarrowWindow * 2 / 3);
  EXPECT_LT(grown, static_cast<std::int64_t>(received / 2));
  for (Asker& asker : askers) asker.leave();
}

TEST_F(AcrossLoops, AnUploadThatTheOriginDoesNotReadIsPausedAndResumed) {
  establish(with_window(65535));
  far_.ask("POST", Framing::chunked);
  std::size_t said = 0;
  const auto say_all = [&] {
    for (int pieces = 0; pieces < 200 && far_.backlog() < kHighWatermark; ++pieces) {
      far_.say(20'000);
      said += 20'000;
      travel();
    }
  };
  say_all();
  EXPECT_LT(said, 65535 + 3 * kHighWatermark);
  Origin::Request& request = origin_->newest();
  const std::size_t writable = far_.writable, paused_at = said;
  for (int rounds = 0; rounds < 20 && far_.backlog() >= kHighWatermark; ++rounds) consume(request, request.received);
  EXPECT_GT(far_.writable, writable);
  say_all();
  EXPECT_GT(said, paused_at);
  far_.end();
  for (int rounds = 0; rounds < 20 && !request.ended; ++rounds) consume(request, 65535);
  EXPECT_TRUE(request.ended);
  EXPECT_EQ(request.received, said);
  origin_->respond("200", true);
  travel();
  EXPECT_EQ(far_.ends, 1U);
}

TEST_F(AcrossLoops, AnUploadStaysPausedUntilEnoughWasSent) {
  constexpr std::size_t kWindow = 65535, kHalf = 40'000;
  establish(with_window(kWindow));
  far_.ask("POST", Framing::chunked);
  far_.say(kWindow);
  travel();
  far_.say(kHighWatermark + 2 * kHalf - 10'000);
  travel();
  ASSERT_GE(far_.backlog(), kHighWatermark);
  Origin::Request& request = origin_->newest();
  consume(request, kHalf);
  ASSERT_EQ(request.received, kWindow + kHalf);
  EXPECT_GE(far_.backlog(), kHighWatermark);
  consume(request, kHalf);
  EXPECT_EQ(far_.backlog(), 0U);
  far_.leave();
}

TEST_F(AcrossLoops, ACancelledUploadSendsNothingMore) {
  establish(with_window(1'000'000));
  far_.ask("POST", Framing::chunked);
  travel();
  far_.say(1000);  // on its way
  far_.say(2000);  // gathered meanwhile
  far_.leave();
  turn(0);
  turn(1);
  EXPECT_FALSE(world_.hosts[0]->loop().mailbox.has_mail());
  travel();
  EXPECT_LE(origin_->newest().received, 1000U);
  ASSERT_FALSE(origin_->frames.empty());
  EXPECT_EQ(origin_->frames.back().type, Origin::kReset);
  EXPECT_EQ(world_.hosts[1]->remotes_out(), 0U);
}

}  // namespace
}  // namespace carpool::test
