// Unit tests of two loops on two threads: no wake-up is lost, no mail is lost or reordered, and registrations move.
#include <array>
#include <atomic>
#include <vector>

#include "tests/unit/exec_support.h"

namespace carpool::exec {
namespace {

using namespace testing;

// A message passed between two loops, with plain data: TSan reports if the mail does not publish it.
struct Ball final : Mail {
  void arrive() override {
    if (++bounces == rounds) return home->post(*done);
    from = 1 - from;
    loops[from]->post(*this);
  }
  std::array<UvLoop*, 2> loops{};
  UvLoop* home = nullptr;
  Mail* done = nullptr;
  std::size_t from = 0;
  int bounces = 0, rounds = 0;
};

// `balls` at once between two loops, `rounds` bounces each.
void play(std::size_t balls, int rounds) {
  auto left = make_loop(0), right = make_loop(1), home = make_loop(2);
  std::size_t ended = 0;
  std::vector<std::unique_ptr<OnArrive>> ends;
  std::vector<Ball> all(balls);
  {
    const Running left_runs(*left), right_runs(*right);
    for (std::size_t i = 0; i < balls; ++i) {
      ends.push_back(std::make_unique<OnArrive>([&] { ++ended; }));
      all[i].loops = {left.get(), right.get()};
      all[i].home = home.get();
      all[i].done = ends.back().get();
      all[i].from = i % 2;
      all[i].rounds = rounds;
      all[i].loops[i % 2]->post(all[i]);
    }
    turn_until(*home, [&] { return ended == balls; });
  }
  for (const Ball& ball : all) EXPECT_EQ(rounds, ball.bounces);
}

// With one message each bounce must wake a loop that is about to sleep or just did.
TEST(TwoLoops, NeverLoseAWakeUp) {
  for (int n = 0; n < 20; ++n) play(1, 5'000);  // each has the whole time limit
}

TEST(TwoLoops, ExchangeAMillionMails) {
  play(200, 5'000);
}

// Received numbers: plain data, accessed on its loop only.
struct Ranks {
  std::array<int, 4> next{};
  int total = 0, out_of_order = 0;
};

struct Ranked final : Mail {
  void arrive() override {
    ranks->out_of_order += ranks->next[sender]++ == number ? 0 : 1;
    if (++ranks->total == expected) loop->stop();
  }
  UvLoop* loop = nullptr;
  Ranks* ranks = nullptr;
  std::size_t sender = 0;
  int number = 0, expected = 0;
};

TEST(TwoLoops, DeliverFromManySendersInEachSendersOrder) {
  constexpr int kEach = 50'000;
  auto loop = make_loop();
  Ranks ranks;
  const int expected = kEach * static_cast<int>(ranks.next.size());
  std::vector<Ranked> mails(static_cast<std::size_t>(expected));
  std::vector<std::thread> senders;
  for (std::size_t s = 0; s < ranks.next.size(); ++s) {
    senders.emplace_back([&, s] {
      for (int n = 0; n < kEach; ++n) {
        Ranked& mail = mails[s * kEach + static_cast<std::size_t>(n)];
        mail.loop = loop.get();
        mail.ranks = &ranks;
        mail.sender = s;
        mail.number = n;
        mail.expected = expected;
        loop->post(mail);
      }
    });
  }
  loop->run();
  for (std::thread& sender : senders) sender.join();
  EXPECT_EQ(0, ranks.out_of_order);
  EXPECT_EQ(expected, ranks.total);
}

TEST(TwoLoops, StopEachOther) {
  for (int i = 0; i < 200; ++i) {
    auto loop = make_loop();
    std::thread runner([&] { loop->run(); });
    loop->stop();
    runner.join();
  }
}

struct SharedCount final : SharedWatcher {
  void on_shared_ready(std::uint32_t /*index*/, std::uint32_t /*generation*/, Ready ready) override {
    if (ready.readable) count.fetch_add(1, std::memory_order_relaxed);
  }
  std::atomic<int> count{0};
};

TEST(TwoLoops, EndASharedRegistrationFromAnotherThread) {
  assume_on_loop();
  auto loop = make_loop();
  SharedCount seen;
  loop->set_shared_watcher(&seen);
  Pair pair;
  ASSERT_TRUE(loop->watch_shared(pair.near.get(), 3, 4));
  // Two mails one after the other are two iterations: an event that was already dequeued has been delivered by then.
  std::atomic<int> arrived{0};
  const auto count = [&] {
    arrived.fetch_add(1, std::memory_order_release);
    arrived.notify_one();
  };
  OnArrive first(count), second(count);
  {
    const Running runs(*loop);
    loop->unwatch_shared(pair.near.get());
    pair.say("nobody listens");
    loop->post(first);
    arrived.wait(0, std::memory_order_acquire);
    loop->post(second);
    arrived.wait(1, std::memory_order_acquire);
  }
  EXPECT_EQ(0, seen.count.load());
}

// One descriptor moves back and forth while its peer writes; every byte is read, whichever loop saw the readiness.
TEST(TwoLoops, MoveADescriptorThatIsBeingWrittenTo) {
  auto first = make_loop(0), second = make_loop(1);
  constexpr int kChange = 2000;
  Pair pair;
  std::atomic<int> bytes{0};
  struct Reader final : SharedWatcher {
    void on_shared_ready(std::uint32_t /*index*/, std::uint32_t /*generation*/, Ready /*ready*/) override {
      char one[256];
      for (;;) {
        const ssize_t received = ::recv(fd, one, sizeof one, 0);
        if (received <= 0) break;
        bytes->fetch_add(static_cast<int>(received), std::memory_order_relaxed);
      }
    }
    int fd = -1;
    std::atomic<int>* bytes = nullptr;
  } readers[2];
  struct Mover final : Mail {
    void arrive() override LOOP_ONLY {
      UvLoop& here = *loops[static_cast<std::size_t>(moves % 2)];
      loops[static_cast<std::size_t>((moves + 1) % 2)]->unwatch_shared(fd);
      ASSERT_TRUE(here.watch_shared(fd, 1, static_cast<std::uint32_t>(moves + 1)));
      if (++moves < kChange) return loops[static_cast<std::size_t>(moves % 2)]->post(*this);
      done.store(true, std::memory_order_release);
    }
    std::array<UvLoop*, 2> loops{};
    int fd = -1, moves = 0;
    std::atomic<bool> done{false};
  } mover;
  mover.loops = {first.get(), second.get()};
  mover.fd = pair.near.get();
  assume_on_loop();
  for (std::size_t i = 0; i < 2; ++i) {
    readers[i].fd = pair.near.get();
    readers[i].bytes = &bytes;
    mover.loops[i]->set_shared_watcher(&readers[i]);
  }
  int written = 0;
  {
    const Running first_runs(*first), second_runs(*second);
    first->post(mover);
    while (!mover.done.load(std::memory_order_acquire)) {
      if (::write(pair.far.get(), "x", 1) == 1) ++written;
    }
    const Instant deadline = Clock::now() + 20s;
    while (bytes.load() < written && Clock::now() < deadline) std::this_thread::yield();
  }
  EXPECT_EQ(written, bytes.load());
}

}  // namespace
}  // namespace carpool::exec
