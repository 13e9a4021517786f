// What a socket would not take waits in order and is never written twice; on a real socket pair.
#include "proxy/net/write_queue.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/unit/proxy_wire.h"

namespace carpool::proxy {
namespace {

using testing::Wire;
constexpr int kSmall = 4096;  // of a send buffer

TEST(Outbox, SendsOwnedTextAndForeignBytesInTheOrderTheyWereAdded) {
  Wire wire(kSmall);
  Outbox outbox;
  WriteBatch batch;
  const std::string body = "body", more = "more";
  batch.text().append("head ");
  batch.add(body);
  batch.text().append(" 4 ");
  batch.add(more);
  batch.text().append(" end");
  EXPECT_EQ(batch.size(), 20U);
  EXPECT_EQ(outbox.send(*wire.transport, batch), Outbox::Sent::all);
  EXPECT_TRUE(batch.empty());
  EXPECT_EQ(wire.read_all(), "head body 4 more end");
  EXPECT_EQ(outbox.taken(), 20U);
}

TEST(Outbox, KeepsWhatTheSocketWouldNotTakeAndLosesOrRepeatsNoByte) {
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): one seed, one history
  for (int round = 0; round < 50; ++round) {
    Wire wire(kSmall);
    Outbox outbox;
    WriteBatch batch;
    std::string sent, got;
    for (int i = 0; i < 60; ++i) {
      std::string bytes(random() % 3000, static_cast<char>('a' + i % 26));
      const std::string framing = "<" + std::to_string(i) + ">";
      batch.text().append(framing);
      batch.add(bytes);
      sent += framing + bytes;
      ASSERT_NE(outbox.send(*wire.transport, batch), Outbox::Sent::failed);
      bytes.assign(bytes.size(), '!');  // the batch must not be needed any more
      if (random() % 3 == 0) {
        got += wire.read_all();
        wire.transport->note({.readable = false, .writable = true, .hangup = false});
        ASSERT_NE(outbox.flush(*wire.transport), Outbox::Sent::failed);
      }
    }
    while (!outbox.empty()) {
      got += wire.read_all();
      wire.transport->note({.readable = false, .writable = true, .hangup = false});
      ASSERT_NE(outbox.flush(*wire.transport), Outbox::Sent::failed);
    }
    got += wire.read_all();
    ASSERT_EQ(got, sent);
    ASSERT_EQ(outbox.taken(), sent.size());
  }
}

TEST(Outbox, DoesNotGrowWithATransferThatIsNeverQuiteTaken) {
  constexpr std::uint64_t kTransfer = std::uint64_t{64} * 1024 * 1024;
  const std::string bytes(16384, 'x');
  std::string room(2048, '\0');  // the far side reads less than the near side offers
  Wire wire(kSmall);
  Outbox outbox;
  WriteBatch batch;
  while (outbox.taken() < kTransfer) {
    if (outbox.size() < kHighMark) batch.add(bytes);
    wire.transport->note({.readable = false, .writable = true, .hangup = false});
    ASSERT_EQ(outbox.send(*wire.transport, batch), Outbox::Sent::part);
    ASSERT_FALSE(outbox.empty());
    ASSERT_LE(outbox.size(), kHighMark + bytes.size());
    ASSERT_LE(outbox.capacity(), 4 * kHighMark);
    ASSERT_GT(::recv(wire.far.get(), room.data(), room.size(), 0), 0);
  }
}

TEST(Outbox, SaysThatTheOtherSideIsGone) {
  Wire wire(kSmall);
  Outbox outbox;
  WriteBatch batch;
  wire.far.reset();
  batch.text().append("x");
  EXPECT_EQ(outbox.send(*wire.transport, batch), Outbox::Sent::failed);
  EXPECT_EQ(outbox.taken(), 0U);
}

}  // namespace
}  // namespace carpool::proxy
