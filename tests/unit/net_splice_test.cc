// Unit tests of splicing: bytes go from one real socket to another through the pipe of a loop, in order, and the pipe
// is empty afterwards.
#include <gtest/gtest.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>

#include "proxy/net/pipe.h"
#include "proxy/net/plain_transport.h"
#include "proxy/net/write_queue.h"
#include "tests/unit/net_support.h"
#include "tests/unit/proxy_wire.h"

namespace carpool::proxy::net {
namespace {

using proxy::testing::Wire;

struct PlainEnd {
  PlainEnd() {
    auto [here, there] = tcp_pair();
    transport = make_plain(std::move(here));
    peer = std::move(there);
  }
  void say(const std::string& bytes) {
    ASSERT_EQ(::send(peer.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    wait_readable(transport->fd());
    transport->on_readiness({.readable = true});
  }
  std::string heard(std::size_t bytes) const {
    std::string all(bytes, '\0');
    EXPECT_EQ(::recv(peer.get(), all.data(), bytes, MSG_WAITALL), static_cast<ssize_t>(bytes));
    return all;
  }
  std::unique_ptr<Transport> transport;
  Fd peer;
};

std::string numbers(std::size_t size) {
  std::string text;
  for (int n = 0; text.size() < size; ++n) text += std::to_string(n) + " ";
  text.resize(size);
  return text;
}

class Splice : public ::testing::Test {
 protected:
  WriteQueue::Sent splice(std::size_t most = Pipe::kCapacity) {
    PipeLease pipe(store_);
    EXPECT_TRUE(pipe);
    return queue_.splice(*origin_.transport, *client_.transport, *pipe, most, io_);
  }
  PlainEnd origin_, client_;
  WriteQueue queue_;
  PipeStore store_;
  IoResult io_;
};

TEST_F(Splice, MovesBytesInOrder) {
  const std::string first = numbers(5000), second = "the end";
  for (const std::string& bytes : {first, second}) {
    origin_.say(bytes);
    ASSERT_EQ(splice(), WriteQueue::Sent::all);
    EXPECT_EQ(io_.io, Io::ok);
    EXPECT_EQ(io_.bytes, bytes.size());
    EXPECT_EQ(client_.heard(bytes.size()), bytes);
  }
  EXPECT_EQ(queue_.bytes_written(), first.size() + second.size());
}

TEST_F(Splice, LeavesInTheSocketWhatItWasNotAskedFor) {
  origin_.say("body and more");
  ASSERT_EQ(splice(4), WriteQueue::Sent::all);
  EXPECT_EQ(io_.bytes, 4U);
  EXPECT_EQ(client_.heard(4), "body");
  EXPECT_TRUE(origin_.transport->maybe_readable());
  EXPECT_FALSE(origin_.transport->no_data_pending());
}

TEST_F(Splice, KeepsInOrderWhatTheClientDoesNotAccept) {
  Wire client(4096);
  const std::string all = numbers(1'000'000);
  std::string heard;
  std::size_t said = 0;
  int blocked = 0;
  for (int rounds = 0; heard.size() < all.size() && rounds < 1000; ++rounds) {
    while (queue_.empty() && (said < all.size() || origin_.transport->maybe_readable())) {
      if (!origin_.transport->maybe_readable()) {
        origin_.say(all.substr(said, 60'000));
        said += std::min<std::size_t>(60'000, all.size() - said);
      }
      PipeLease pipe(store_);
      ASSERT_NE(queue_.splice(*origin_.transport, *client.transport, *pipe, Pipe::kCapacity, io_),
                WriteQueue::Sent::failed);
    }
    blocked += queue_.empty() ? 0 : 1;
    heard += client.read_all();
    client.transport->on_readiness({.readable = false, .writable = true, .hangup = false});
    ASSERT_NE(queue_.flush(*client.transport), WriteQueue::Sent::failed);
  }
  EXPECT_GT(blocked, 5);
  EXPECT_EQ(heard, all);
  EXPECT_EQ(queue_.bytes_written(), all.size());
}

TEST_F(Splice, LeavesBytesInThePipeWhenTheSocketIsFull) {
  Wire client(4096);
  PipeLease pipe(store_);
  (*pipe).put(numbers(1));
  for (int n = 0; n < 10'000; ++n) {
    if (client.transport->splice_from(*pipe).io == Io::would_block) break;
    if ((*pipe).empty()) (*pipe).put(numbers(10'000));
  }
  EXPECT_FALSE(client.transport->maybe_writable());
  const std::size_t held = (*pipe).held();
  EXPECT_GT(held, 0U);
  EXPECT_EQ((*pipe).take().size(), held);
}

TEST_F(Splice, ReportsTheEndOfTheOriginsBytes) {
  origin_.peer.reset();
  wait_readable(origin_.transport->fd());
  EXPECT_EQ(splice(), WriteQueue::Sent::all);
  EXPECT_EQ(io_.io, Io::eof);
}

TEST_F(Splice, ReportsAnEmptySocket) {
  origin_.transport->on_readiness({.readable = true});
  EXPECT_EQ(splice(), WriteQueue::Sent::all);
  EXPECT_EQ(io_.io, Io::would_block);
  EXPECT_FALSE(origin_.transport->maybe_readable());
}

TEST_F(Splice, ReportsAResetOfTheOrigin) {
  const linger hard{1, 0};
  ::setsockopt(origin_.peer.get(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  origin_.peer.reset();
  wait_readable(origin_.transport->fd());
  EXPECT_EQ(splice(), WriteQueue::Sent::all);
  EXPECT_EQ(io_.io, Io::failed);
  EXPECT_EQ(io_.error, ECONNRESET);
  EXPECT_FALSE(cannot_splice(io_.error));
}

TEST_F(Splice, ReportsAClientThatIsGone) {
  const linger hard{1, 0};
  ::setsockopt(client_.peer.get(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  client_.peer.reset();
  wait_readable(client_.transport->fd());
  origin_.say(numbers(10'000));
  EXPECT_EQ(splice(), WriteQueue::Sent::failed);
  EXPECT_EQ(io_.bytes, 10'000U);
}

TEST(PipeStore, ClosesAPipeThatAnExceptionLeftWithBytes) {
  PipeStore store;
  {
    PipeLease pipe(store);
    (*pipe).put("of another response");
  }
  PipeLease next(store);
  EXPECT_TRUE((*next).empty());
  (*next).put("mine");
  EXPECT_EQ((*next).take(), "mine");
}

TEST(PipeStore, OpensNoPipeBeforeTheFirstUseAndClosesAnUnusedOne) {
  const auto descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto before = descriptors();
  PipeStore store;
  EXPECT_EQ(descriptors(), before);
  { const PipeLease pipe(store); }
  EXPECT_EQ(descriptors(), before + 2);
  EXPECT_TRUE(store.sweep()) << "it was in use since the sweep before";
  EXPECT_EQ(descriptors(), before + 2);
  EXPECT_FALSE(store.sweep());
  EXPECT_EQ(descriptors(), before);
}

TEST(PipeStore, IsNotAvailableUntilTheNextSweepAfterARefusal) {
  PipeStore store;
  EXPECT_TRUE(store.available());
  store.refuse();
  EXPECT_FALSE(store.available());
  store.sweep();
  EXPECT_TRUE(store.available());
}

TEST(Pipe, TellsAnErrorOfTheSystemFromOneOfThePeer) {
  std::optional<Pipe> pipe = Pipe::open();
  ASSERT_TRUE(pipe);
  const Fd no_stream(::epoll_create1(EPOLL_CLOEXEC));
  EXPECT_LT(pipe->fill(no_stream.get(), 100), 0);
  EXPECT_TRUE(cannot_splice(errno));
  for (const int error : {EINVAL, ENOSYS, EPERM, EOPNOTSUPP, ENOMEM}) EXPECT_TRUE(cannot_splice(error)) << error;
  for (const int error : {EPIPE, EAGAIN, ECONNRESET, ETIMEDOUT}) EXPECT_FALSE(cannot_splice(error)) << error;
}

}  // namespace
}  // namespace carpool::proxy::net
