#include "proxy/net/plain_transport.h"

#include <fcntl.h>
#include <netinet/tcp.h>

#include <vector>

#include "tests/unit/net_support.h"

namespace carpool::proxy::net {
namespace {

struct PlainPair {
  PlainPair() {
    auto [here, there] = tcp_pair();
    transport = make_plain(std::move(here));
    peer = std::move(there);
  }
  void say(std::string_view bytes) { ASSERT_EQ(::send(peer.get(), bytes.data(), bytes.size(), 0), ssize(bytes)); }
  static ssize_t ssize(std::string_view bytes) { return static_cast<ssize_t>(bytes.size()); }
  IoResult read(std::size_t most = 100) {
    wait_readable(transport->fd());
    return transport->read(std::span(buffer).first(most));
  }
  std::unique_ptr<Transport> transport;
  Fd peer;
  std::array<char, 4096> buffer{};
};

TEST(PlainTransport, PreparesItsSocket) {
  PlainPair pair;
  EXPECT_NE(::fcntl(pair.transport->fd(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(::fcntl(pair.transport->fd(), F_GETFD) & FD_CLOEXEC, 0);
  int delay_off = 0;
  socklen_t size = sizeof delay_off;
  ASSERT_EQ(::getsockopt(pair.transport->fd(), IPPROTO_TCP, TCP_NODELAY, &delay_off, &size), 0);
  EXPECT_NE(delay_off, 0);
}

TEST(PlainTransport, KeepsTheReadableBitAfterAReadThatFillsTheBuffer) {
  PlainPair pair;
  pair.say("12345678");
  pair.transport->on_readiness({.readable = true});
  EXPECT_EQ(pair.read(4).bytes, 4U);
  EXPECT_TRUE(pair.transport->maybe_readable());
  EXPECT_EQ(pair.read(4).bytes, 4U);
  EXPECT_TRUE(pair.transport->maybe_readable());
  EXPECT_EQ(pair.transport->read(pair.buffer).io, Io::would_block);
  EXPECT_FALSE(pair.transport->maybe_readable());
}

TEST(PlainTransport, ClearsTheReadableBitAfterAShortRead) {
  PlainPair pair;
  pair.say("1234");
  pair.transport->on_readiness({.readable = true});
  EXPECT_EQ(pair.read(100).bytes, 4U);
  EXPECT_FALSE(pair.transport->maybe_readable());
}

TEST(PlainTransport, LooksAgainAfterAShortReadOnceAHangUpWasSeen) {
  PlainPair pair;
  pair.say("last words");
  pair.peer.reset();
  pair.transport->on_readiness({.readable = true, .hangup = true});
  EXPECT_EQ(pair.read().bytes, 10U);
  EXPECT_TRUE(pair.transport->maybe_readable());  // the FIN follows, and no event will report it
  EXPECT_EQ(pair.transport->read(pair.buffer).io, Io::eof);
}

TEST(PlainTransport, LooksAgainAfterAReadThatUrgentDataStopped) {
  PlainPair pair;
  pair.say("before");
  ASSERT_EQ(::send(pair.peer.get(), "!", 1, MSG_OOB), 1);
  pair.say("behind");
  pair.transport->on_readiness({.readable = true, .urgent = true});
  EXPECT_EQ(pair.read().bytes, 6U);
  EXPECT_TRUE(pair.transport->maybe_readable());  // the rest has arrived, and no event will report it
  EXPECT_EQ(pair.read().bytes, 6U);
  EXPECT_EQ(std::string_view(pair.buffer.data(), 6), "behind");
}

TEST(PlainTransport, GathersPiecesIntoOneWrite) {
  PlainPair pair;
  const std::array pieces{piece("head\r\n\r\n"), piece(""), piece("body")};
  const IoResult result = pair.transport->write(pieces);
  EXPECT_EQ(result.io, Io::ok);
  EXPECT_EQ(result.bytes, 12U);
  EXPECT_TRUE(pair.transport->maybe_writable());
  ASSERT_TRUE(wait_readable(pair.peer.get()));
  std::array<char, 64> received{};
  EXPECT_EQ(::recv(pair.peer.get(), received.data(), received.size(), 0), 12);
  EXPECT_EQ(std::string_view(received.data(), 12), "head\r\n\r\nbody");
}

TEST(PlainTransport, ClearsTheWritableBitWhenThePeerDoesNotRead) {
  PlainPair pair;
  const std::string much(16U << 20U, 'x');
  const std::array pieces{piece(much)};
  IoResult result = pair.transport->write(pieces);
  EXPECT_EQ(result.io, Io::ok);
  EXPECT_LT(result.bytes, much.size());
  EXPECT_FALSE(pair.transport->maybe_writable());
  while (result.io == Io::ok)
    result = pair.transport->write(pieces);  // the system moves some to the peer's buffer late
  EXPECT_EQ(result.io, Io::would_block);
  EXPECT_FALSE(pair.transport->maybe_writable());
  pair.transport->on_readiness({.writable = true});
  EXPECT_TRUE(pair.transport->maybe_writable());
}

TEST(PlainTransport, FailsWithTheSystemsReasonAfterAReset) {
  PlainPair pair;
  const linger at_once{1, 0};
  ASSERT_EQ(::setsockopt(pair.peer.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  pair.peer.reset();
  const IoResult result = pair.read();
  EXPECT_EQ(result.io, Io::failed);
  EXPECT_EQ(result.error, ECONNRESET);
}

// The system reports a reset once, and here to the write: a read alone would find the end of the stream.
TEST(PlainTransport, TakesNoResetForAnEndThoughAWriteFailedBefore) {
  PlainPair pair;
  pair.say("part");
  const linger at_once{1, 0};
  ASSERT_EQ(::setsockopt(pair.peer.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  pair.peer.reset();
  const std::array pieces{piece("x")};
  const IoResult written = pair.transport->write(pieces);
  EXPECT_EQ(written.io, Io::failed);
  EXPECT_EQ(written.error, ECONNRESET);
  EXPECT_EQ(pair.transport->write(pieces).error, EPIPE);
  IoResult result = pair.read();
  while (result.io == Io::ok) result = pair.read();
  EXPECT_EQ(result.io, Io::failed);
  EXPECT_EQ(result.error, ECONNRESET);
}

// Here the report goes to the peek for pending data.
TEST(PlainTransport, TakesNoResetForAnEndInOrderThoughAPeekMetItBefore) {
  PlainPair pair;
  pair.transport->on_readiness({.readable = true});
  const linger at_once{1, 0};
  ASSERT_EQ(::setsockopt(pair.peer.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  pair.peer.reset();
  wait_readable(pair.transport->fd());
  EXPECT_FALSE(pair.transport->no_data_pending());
  EXPECT_FALSE(pair.transport->ended_in_order());
  EXPECT_FALSE(pair.transport->no_data_pending());
  const IoResult result = pair.read();
  EXPECT_EQ(result.io, Io::failed);
  EXPECT_EQ(result.error, ECONNRESET);
}

TEST(PlainTransport, EndsInOrderByFinWithoutDataBeforeIt) {
  PlainPair pair;
  EXPECT_FALSE(pair.transport->ended_in_order());
  EXPECT_TRUE(pair.transport->no_data_pending());
  pair.peer.reset();
  wait_readable(pair.transport->fd());
  EXPECT_FALSE(pair.transport->no_data_pending());
  EXPECT_TRUE(pair.transport->ended_in_order());
  PlainPair late;
  late.say("late");
  late.peer.reset();
  wait_readable(late.transport->fd());
  EXPECT_FALSE(late.transport->ended_in_order());
}

TEST(PlainTransport, ReadsToTheEndOfAPeerThatTakesNoMore) {
  PlainPair pair;
  pair.say("all of it");
  pair.peer.reset();
  const std::array pieces{piece("x")};
  IoResult written = pair.transport->write(pieces);  // answered with a reset, behind the peer's FIN
  while (written.io == Io::ok) written = pair.transport->write(pieces);
  EXPECT_EQ(written.error, EPIPE);
  EXPECT_EQ(pair.read().bytes, 9U);
  EXPECT_EQ(pair.read().io, Io::eof);
}

TEST(PlainTransport, IsQuietOnlyWhileNothingStandsOnTheWire) {
  PlainPair pair;
  pair.transport->on_readiness({.readable = true});
  EXPECT_TRUE(pair.transport->no_data_pending());
  EXPECT_FALSE(pair.transport->maybe_readable());
  pair.say("x");
  wait_readable(pair.transport->fd());
  EXPECT_FALSE(pair.transport->no_data_pending());
  EXPECT_EQ(pair.read().bytes, 1U);  // the peek consumed nothing
  EXPECT_TRUE(pair.transport->no_data_pending());
  pair.peer.reset();
  wait_readable(pair.transport->fd());
  EXPECT_FALSE(pair.transport->no_data_pending());
}

TEST(PlainTransport, IsNeverQuietAfterAHangUp) {
  PlainPair pair;
  pair.transport->on_readiness({.hangup = true});
  EXPECT_FALSE(pair.transport->no_data_pending());
}

TEST(PlainTransport, StillReadsAfterItsOwnFin) {
  PlainPair pair;
  pair.transport->shut_write();
  std::array<char, 8> received{};
  EXPECT_EQ(::recv(pair.peer.get(), received.data(), received.size(), 0), 0);
  pair.say("late");
  EXPECT_EQ(pair.read().bytes, 4U);
}

TEST(PlainTransport, SpeaksOverUnixSocketsToo) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const auto transport = make_plain(Fd(ends[0]));
  const Fd peer(ends[1]);
  const std::array pieces{piece("hello")};
  EXPECT_EQ(transport->write(pieces).bytes, 5U);
  EXPECT_TRUE(transport->no_data_pending());
}

TEST(PlainTransport, StartsAnewWhenItIsWatchedElsewhere) {
  PlainPair pair;
  pair.transport->on_readiness({.readable = true, .writable = true, .hangup = true});
  pair.transport->forget_readiness();
  EXPECT_FALSE(pair.transport->maybe_readable());
  EXPECT_FALSE(pair.transport->hangup_seen());
  EXPECT_TRUE(pair.transport->maybe_writable());
}

}  // namespace
}  // namespace carpool::proxy::net
