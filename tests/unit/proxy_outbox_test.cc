// What a socket would not take waits in order and is never written twice; on a real socket pair.
#include "proxy/outbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <random>
#include <string>

#include "base/fd.h"
#include "proxy/net/plain.h"

namespace carpool::proxy {
namespace {

struct Wire {
  Wire() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    const int small = 4096;
    ::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    transport = net::make_plain(ends[0]);
    far.reset(ends[1]);
  }
  std::string read_all() {
    std::string got;
    char buffer[65536];
    for (ssize_t n = 0; (n = ::recv(far.get(), buffer, sizeof buffer, 0)) > 0;)
      got.append(buffer, static_cast<std::size_t>(n));
    return got;
  }
  std::unique_ptr<net::Transport> transport;
  Fd far;
};

TEST(Outbox, SendsOwnedTextAndForeignBytesInTheOrderTheyWereAdded) {
  Wire wire;
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
    Wire wire;
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
  Wire wire;
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
  Wire wire;
  Outbox outbox;
  WriteBatch batch;
  wire.far.reset();
  batch.text().append("x");
  EXPECT_EQ(outbox.send(*wire.transport, batch), Outbox::Sent::failed);
  EXPECT_EQ(outbox.taken(), 0U);
}

}  // namespace
}  // namespace carpool::proxy
