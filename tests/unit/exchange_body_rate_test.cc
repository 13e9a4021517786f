// Unit tests of the minimum rate of a request's body, and of when a body may be in flight.
#include "proxy/exchange/body_rate.h"

#include <gtest/gtest.h>

#include "proxy/exchange/request_body.h"

namespace carpool::proxy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kLong = std::chrono::hours(24 * 400);

config::Listen rules(config::Size rate, Duration grace) {
  config::Listen listen;
  listen.body_min_rate = rate;
  listen.body_grace = grace;
  return listen;
}

http::RequestHead head_of(std::uint64_t length) {
  http::RequestHead head;
  head.framing = http::Framing::length;
  head.length = length;
  return head;
}

TEST(ABodysRate, AllowsTheGraceAndTheTimeOfTheReceivedBytes) {
  const Instant now{seconds(100)};
  BodyRate rate;
  EXPECT_EQ(rate.deadline(now, 0, kLong), kNever) << "nothing is demanded";
  rate.begin(now, rules(500, seconds(20)));
  EXPECT_EQ(rate.deadline(now, 0, kLong), now + seconds(20));
  EXPECT_EQ(rate.deadline(now, 500, kLong), now + seconds(21));
  EXPECT_EQ(rate.deadline(now, 499, kLong), now + seconds(20) + milliseconds(998));
  rate.begin(now, rules(0, seconds(20)));
  EXPECT_EQ(rate.deadline(now, 0, kLong), kNever);
}

TEST(ABodysRate, EndsABodyOfOneByteASecondWellWithinTwentySecondsByDefault) {
  const Instant now{seconds(100)};
  BodyRate rate;
  rate.begin(now, config::Listen());
  EXPECT_LT(rate.deadline(now, 20, kLong), now + seconds(18));
}

TEST(ABodysRate, BeginsAnewWhereItsClientWasHeldBack) {
  const Instant now{seconds(100)};
  BodyRate rate;
  rate.begin(now, rules(500, seconds(20)));
  rate.renew(now + seconds(60), 100'000);
  EXPECT_EQ(rate.deadline(now, 100'000, kLong), now + seconds(80));
  EXPECT_EQ(rate.deadline(now, 100'500, kLong), now + seconds(81));
}

TEST(ABodysRate, OverflowsAtNoSize) {
  const Instant now{seconds(100)};
  BodyRate rate;
  rate.begin(now, rules(1, seconds(20)));
  for (const std::uint64_t received : {std::uint64_t{9'300'000'000}, std::uint64_t{1} << 40, std::uint64_t{1} << 62}) {
    EXPECT_GT(rate.deadline(now, received, kLong), now + std::chrono::hours(24 * 365)) << received;
  }
}

TEST(ABodysRate, CountsWhatIsAheadOfItForAtMostTheIdleTimeout) {
  const Instant now{seconds(100)};
  BodyRate rate;
  rate.begin(now, rules(500, seconds(20)));
  EXPECT_EQ(rate.deadline(now, 1'000'000, seconds(60)), now + seconds(60)) << "not 2,020 seconds";
  EXPECT_EQ(rate.deadline(now + seconds(50), 1'000'001, seconds(60)), now + seconds(60) + milliseconds(2));
  EXPECT_EQ(rate.deadline(now + seconds(55), 1'100'000, seconds(60)), now + seconds(115)) << "it has become faster";
}

TEST(ABodysRate, IsKeptByAFastBodyOfAnySize) {
  Instant now{seconds(100)};
  BodyRate rate;
  rate.begin(now, rules(1, seconds(20)));
  std::uint64_t received = 0;
  for (int n = 0; n < 1000; ++n, now += seconds(1)) {
    received += 100'000'000;
    ASSERT_EQ(rate.deadline(now, received, seconds(60)), now + seconds(60)) << received;
  }
}

TEST(ABodysRate, CountsWhatIsAheadOfItForItsGraceAtLeast) {
  const Instant now{seconds(100)};
  BodyRate rate;
  rate.begin(now, rules(500, seconds(20)));
  EXPECT_EQ(rate.deadline(now, 0, seconds(5)), now + seconds(20));
  EXPECT_EQ(rate.deadline(now + seconds(5), 1'000'000, seconds(5)), now + seconds(25));
}

TEST(ABodyThatFits, TravelsWhenItIsWhole) {
  exec::assume_on_loop();
  RequestBody upload;
  upload.begin(head_of(10), 100);
  upload.add("123456789", nullptr);
  EXPECT_FALSE(upload.may_be_sent(seconds(60), 0));
  upload.add("0", nullptr);
  upload.end(nullptr);
  EXPECT_TRUE(upload.may_be_sent(Duration::zero(), 500));
}

TEST(ABodyOverItsLimit, IsNotHeld) {
  exec::assume_on_loop();
  RequestBody upload;
  upload.begin(head_of(10), 100, 5);
  upload.add("12345", nullptr);
  EXPECT_FALSE(upload.over_limit());
  upload.add("6", nullptr);
  EXPECT_TRUE(upload.over_limit());
  upload.begin(head_of(10), 100);
  upload.add("123456", nullptr);
  EXPECT_FALSE(upload.over_limit()) << "no limit";
}

TEST(ALargeBody, TravelsWhenTheBufferIsFullOrItStreams) {
  exec::assume_on_loop();
  RequestBody upload;
  upload.begin(head_of(1000), 100);
  upload.add(std::string(99, 'x'), nullptr);
  EXPECT_FALSE(upload.may_be_sent(milliseconds(199), 0));
  EXPECT_TRUE(upload.may_be_sent(milliseconds(200), 495));
  EXPECT_FALSE(upload.may_be_sent(milliseconds(200), 500));
  upload.add("x", nullptr);
  EXPECT_TRUE(upload.may_be_sent(Duration::zero(), 500));
}

}  // namespace
}  // namespace carpool::proxy
