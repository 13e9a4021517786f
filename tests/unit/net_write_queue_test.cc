// Unit tests of WriteQueue: unsent bytes wait in order and are never written twice; on a real socket pair.
#include "proxy/net/write_queue.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "proxy/net/io_limits.h"
#include "tests/unit/proxy_wire.h"

namespace carpool::proxy {
namespace {

using testing::Wire;
constexpr int kSmall = 4096;  // of a send buffer

TEST(WriteQueue, SendsOwnedTextAndForeignBytesInTheOrderTheyWereAdded) {
  Wire wire(kSmall);
  WriteQueue write_queue;
  WriteBatch batch;
  const std::string body = "body", more = "more";
  batch.text().append("head ");
  batch.add(body);
  batch.text().append(" 4 ");
  batch.add(more);
  batch.text().append(" end");
  EXPECT_EQ(batch.size(), 20U);
  EXPECT_EQ(write_queue.send(*wire.transport, batch), WriteQueue::Sent::all);
  EXPECT_TRUE(batch.empty());
  EXPECT_EQ(wire.read_all(), "head body 4 more end");
  EXPECT_EQ(write_queue.bytes_written(), 20U);
}

TEST(WriteQueue, KeepsTheBytesThatTheSocketRefusedAndLosesOrRepeatsNone) {
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): one seed, one history
  for (int round = 0; round < 50; ++round) {
    Wire wire(kSmall);
    WriteQueue write_queue;
    WriteBatch batch;
    std::string sent, received;
    for (int i = 0; i < 60; ++i) {
      std::string bytes(random() % 3000, static_cast<char>('a' + i % 26));
      const std::string framing = "<" + std::to_string(i) + ">";
      batch.text().append(framing);
      batch.add(bytes);
      sent += framing + bytes;
      ASSERT_NE(write_queue.send(*wire.transport, batch), WriteQueue::Sent::failed);
      bytes.assign(bytes.size(), '!');  // the batch must not be needed any more
      if (random() % 3 == 0) {
        received += wire.read_all();
        wire.transport->on_readiness({.readable = false, .writable = true, .hangup = false});
        ASSERT_NE(write_queue.flush(*wire.transport), WriteQueue::Sent::failed);
      }
    }
    while (!write_queue.empty()) {
      received += wire.read_all();
      wire.transport->on_readiness({.readable = false, .writable = true, .hangup = false});
      ASSERT_NE(write_queue.flush(*wire.transport), WriteQueue::Sent::failed);
    }
    received += wire.read_all();
    ASSERT_EQ(received, sent);
    ASSERT_EQ(write_queue.bytes_written(), sent.size());
  }
}

TEST(WriteQueue, DoesNotGrowWithATransferThatIsNeverQuiteTaken) {
  constexpr std::uint64_t kTransfer = std::uint64_t{64} * 1024 * 1024;
  const std::string bytes(16384, 'x');
  std::string room(2048, '\0');  // the far side reads less than the near side offers
  Wire wire(kSmall);
  WriteQueue write_queue;
  WriteBatch batch;
  while (write_queue.bytes_written() < kTransfer) {
    if (write_queue.size() < kHighWatermark) batch.add(bytes);
    wire.transport->on_readiness({.readable = false, .writable = true, .hangup = false});
    ASSERT_EQ(write_queue.send(*wire.transport, batch), WriteQueue::Sent::part);
    ASSERT_FALSE(write_queue.empty());
    ASSERT_LE(write_queue.size(), kHighWatermark + bytes.size());
    ASSERT_LE(write_queue.capacity(), 4 * kHighWatermark);
    ASSERT_GT(::recv(wire.far.get(), room.data(), room.size(), 0), 0);
  }
}

TEST(WriteQueue, SaysThatTheOtherSideIsGone) {
  Wire wire(kSmall);
  WriteQueue write_queue;
  WriteBatch batch;
  wire.far.reset();
  batch.text().append("x");
  EXPECT_EQ(write_queue.send(*wire.transport, batch), WriteQueue::Sent::failed);
  EXPECT_EQ(write_queue.bytes_written(), 0U);
}

}  // namespace
}  // namespace carpool::proxy
