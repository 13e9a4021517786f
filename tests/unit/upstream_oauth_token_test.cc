// Unit tests of the token in force of an origin: which loop reads which one, and when another one is requested.
#include "proxy/upstream/origin/oauth_token.h"

#include <gtest/gtest.h>

#include "exec/uv/loop.h"

namespace carpool::proxy {
namespace {

using std::chrono::seconds;
const Instant kTokenStart = Instant{} + std::chrono::hours(1);

class AToken : public ::testing::Test {
 protected:
  AToken() : loop_(std::move(*exec::UvLoop::make(0))), mail_(*loop_, exec::Bound::to<&AToken::asked>(*this)) {
    token_.keep_by(mail_);
  }
  ~AToken() override { deliver(); }
  void asked() { ++asked_; }
  int deliver() {
    exec::assume_on_loop();
    loop_->drain();
    return std::exchange(asked_, 0);
  }
  std::string field() const {
    std::string value;
    static_cast<void>(token_.read(value));
    return value;
  }
  static Fault fault() { return {FaultKind::malformed_response, Side::self, "no"}; }

  std::unique_ptr<exec::UvLoop> loop_;
  exec::CoalescedMail mail_;
  OAuthToken token_{config::OAuth2{}};
  int asked_ = 0;
};

TEST_F(AToken, IsExpectedUntilTheFirstResponse) {
  EXPECT_EQ(token_.serial(), 0U);
  EXPECT_FALSE(token_.fault()) << "requests wait";
  token_.fail(fault());
  EXPECT_TRUE(token_.fault()) << "requests fail";
  token_.begin_fetch();
  EXPECT_FALSE(token_.fault()) << "requests wait again";
}

TEST_F(AToken, HasANumberThatNoOtherHas) {
  token_.grant("a");
  EXPECT_EQ(field(), "Bearer a");
  const std::uint64_t first = token_.serial();
  token_.expire();
  EXPECT_EQ(token_.serial(), 0U);
  EXPECT_EQ(field(), "");
  token_.grant("b");
  EXPECT_NE(token_.serial(), first);
  EXPECT_EQ(field(), "Bearer b");
}

TEST_F(AToken, ThatIsRefusedIsReplacedOnceForAllWhoWereRefused) {
  token_.grant("a");
  const std::uint64_t refused = token_.serial();
  EXPECT_TRUE(token_.refuse(refused, kTokenStart));
  EXPECT_TRUE(token_.refuse(refused, kTokenStart)) << "the same renewal serves both";
  EXPECT_EQ(deliver(), 1);
  token_.grant("b");
  EXPECT_TRUE(token_.refuse(refused, kTokenStart)) << "there is another one";
  EXPECT_EQ(deliver(), 0);
}

TEST_F(AToken, IsNotReplacedAgainBeforeAPauseIsOver) {
  token_.grant("a");
  EXPECT_TRUE(token_.refuse(token_.serial(), kTokenStart));
  token_.grant("b");
  EXPECT_FALSE(token_.refuse(token_.serial(), kTokenStart + seconds(9))) << "the origin accepts none";
  EXPECT_TRUE(token_.refuse(token_.serial(), kTokenStart + seconds(10)));
  EXPECT_EQ(deliver(), 1) << "two posts, one mail";
}

TEST_F(AToken, WhoseKeeperHasStoppedIsNotReplaced) {
  for (const bool renewed : {false, true}) {
    token_.keep_by(mail_);
    token_.grant("a");
    if (renewed) token_.begin_fetch();
    token_.leave(fault());
    EXPECT_FALSE(token_.refuse(token_.serial(), kTokenStart)) << "the client gets its 401";
    EXPECT_TRUE(token_.fault()) << "no request waits";
    EXPECT_EQ(deliver(), 0);
    EXPECT_EQ(field(), "Bearer a") << "it is still valid for requests that began before";
  }
}

TEST_F(AToken, IsReplacedAgainOnceItsKeeperIsBack) {
  token_.grant("a");
  token_.leave(fault());
  token_.keep_by(mail_);
  EXPECT_FALSE(token_.fault());
  EXPECT_TRUE(token_.refuse(token_.serial(), kTokenStart));
  EXPECT_EQ(deliver(), 1);
}

TEST_F(AToken, IsNotReplacedWhileTheEndpointFails) {
  token_.grant("a");
  token_.begin_fetch();
  EXPECT_TRUE(token_.refuse(token_.serial(), kTokenStart)) << "a renewal is under way";
  token_.fail(fault());
  EXPECT_FALSE(token_.refuse(token_.serial(), kTokenStart + seconds(60)));
  EXPECT_EQ(deliver(), 0);
  EXPECT_EQ(field(), "Bearer a") << "it is still valid for other requests";
}

}  // namespace
}  // namespace carpool::proxy
