// Unit tests of fan_out: each loop replies once, a loop that ended ends its part, and no caller waits forever.
#include "exec/fan_out.h"

#include <algorithm>
#include <stdexcept>

#include "exec/coalesced_mail.h"
#include "tests/unit/exec_support.h"

namespace carpool::exec {
namespace {

using namespace testing;

// An object with a loop, as fan_out() expects it.
struct Part {
  explicit Part(LoopId id) : loop(make_loop(id)), number(id) {}
  std::unique_ptr<UvLoop> loop;
  int number;
};
Loop& loop_of(const Part& part) {
  return *part.loop;
}
using Parts = std::vector<std::unique_ptr<Part>>;

Parts make_parts(int count) {
  Parts parts;
  for (int i = 1; i <= count; ++i) parts.push_back(std::make_unique<Part>(static_cast<LoopId>(i)));
  return parts;
}

template <class Reply>
std::vector<Reply> sorted(std::vector<Reply> replies) {
  std::sort(replies.begin(), replies.end());
  return replies;
}

struct RunningParts {
  explicit RunningParts(const Parts& parts) {
    for (const auto& part : parts) running.push_back(std::make_unique<Running>(*part->loop));
  }
  std::vector<std::unique_ptr<Running>> running;
};

const auto number_of = [](Part& part) { return part.number; };

TEST(QueryLoops, GathersTheReplyOfEveryLoop) {
  const Parts parts = make_parts(3);
  const RunningParts running(parts);
  EXPECT_EQ((std::vector<int>{1, 2, 3}), sorted(query_loops<int>(parts, 20s, number_of)));
}

TEST(QueryLoops, AsksEachOnItsOwnThread) {
  const Parts parts = make_parts(2);
  const RunningParts running(parts);
  std::vector<std::thread::id> threads{running.running[0]->thread.get_id(), running.running[1]->thread.get_id()};
  EXPECT_EQ(sorted(threads), sorted(query_loops<std::thread::id>(parts, 20s, [](Part& part) {
              static_cast<UvLoop&>(loop_of(part)).enter();
              return std::this_thread::get_id();
            })));
}

TEST(QueryLoops, LeavesOutTheLoopThatDoesNotLookInTime) {
  const Parts parts = make_parts(2);
  {
    const Running first(*parts.front()->loop);
    EXPECT_EQ(std::vector<int>{1}, query_loops<int>(parts, 2s, number_of));
  }
  parts.back()->loop->drain();  // its reply arrives too late and is dropped
}

TEST(Replies, SayWhetherOneIsMissing) {
  const Parts parts = make_parts(2);
  const auto replies = std::make_shared<Replies<int>>(parts.size());
  fan_out(parts, replies, number_of);
  parts.front()->loop->drain();
  EXPECT_FALSE(replies->all_ended(1ms));
  EXPECT_EQ(std::vector<int>{1}, replies->take()) << "without a wait for the other one";
  parts.back()->loop->drain();
  EXPECT_TRUE(replies->all_ended(20s));
  EXPECT_EQ(std::vector<int>{2}, replies->take());
}

TEST(QueryLoops, DoesNotWaitForALoopThatIsGone) {
  Parts parts = make_parts(2);
  const auto replies = std::make_shared<Replies<int>>(parts.size());
  fan_out(parts, replies, number_of);
  parts.front()->loop->drain();
  parts.back()->loop.reset();  // with the question in its mailbox
  EXPECT_EQ(std::vector<int>{1}, replies->wait(20s));
}

TEST(QueryLoops, DoesNotWaitForALoopOnWhichTheQuestionThrows) {
  const Parts parts = make_parts(2);
  const auto replies = std::make_shared<Replies<int>>(parts.size());
  fan_out(parts, replies, [](Part& part) {
    if (part.number == 2) throw std::runtime_error("no");
    return part.number;
  });
  parts.front()->loop->drain();
  EXPECT_THROW(parts.back()->loop->drain(), std::runtime_error);
  EXPECT_EQ(std::vector<int>{1}, replies->wait(20s));
}

TEST(QueryLoops, ReturnsAtOnceWhenNobodyIsAsked) {
  EXPECT_TRUE(query_loops<int>(Parts(), 20s, number_of).empty());
}

TEST(QueryLoop, ReturnsTheReplyOrNothing) {
  auto loop = make_loop();
  EXPECT_EQ(std::nullopt, query_loop<int>(*loop, 1ms, [] { return 7; }));
  loop->drain();
  const Running running(*loop);
  EXPECT_EQ(7, query_loop<int>(*loop, 20s, [] { return 7; }));
}

TEST(QueryLoopsThen, BringsAllRepliesHome) {
  auto home = make_loop();
  const Parts parts = make_parts(3);
  const RunningParts running(parts);
  std::vector<int> all;
  query_loops_then<int>(*home, parts, number_of, [&](std::vector<int> replies) {
    home->enter();
    all = std::move(replies);
  });
  turn_until(*home, [&] { return !all.empty(); });
  EXPECT_EQ((std::vector<int>{1, 2, 3}), sorted(all));
}

TEST(QueryLoopsThen, WaitsForTheLastOneAndDoesNotMissTheLoopThatIsGone) {
  auto home = make_loop();
  Parts parts = make_parts(3);
  int calls = 0;
  std::vector<int> all;
  query_loops_then<int>(*home, parts, number_of, [&](std::vector<int> replies) {
    ++calls;
    all = std::move(replies);
  });
  parts[0]->loop->drain();
  parts[1]->loop.reset();
  home->drain();
  EXPECT_EQ(0, calls);
  parts[2]->loop->drain();
  home->drain();
  EXPECT_EQ(1, calls);
  EXPECT_EQ((std::vector<int>{1, 3}), sorted(all));
}

TEST(QueryLoopsThen, MayAskTheLoopThatItComesHomeTo) {
  const Parts parts = make_parts(1);
  int reply = 0;
  query_loops_then<int>(*parts[0]->loop, parts, number_of,
                        [&](const std::vector<int>& replies) { reply = replies.front(); });
  parts[0]->loop->drain();
  EXPECT_EQ(1, reply);
}

TEST(QueryLoopsThen, ComesHomeWhenNobodyIsAsked) {
  auto home = make_loop();
  bool came = false;
  query_loops_then<int>(*home, Parts(), number_of, [&](const std::vector<int>& replies) { came = replies.empty(); });
  home->drain();
  EXPECT_TRUE(came);
}

TEST(PostToLoops, CallsEachOnItsLoop) {
  const Parts parts = make_parts(3);
  int told = 0;
  post_to_loops(parts, [&](Part& part) {
    static_cast<UvLoop&>(loop_of(part)).enter();
    told += part.number;
  });
  EXPECT_EQ(0, told);
  for (const auto& part : parts) part->loop->drain();
  EXPECT_EQ(6, told);
}

struct Counter {
  void arrived() {
    ++calls;
    if (again) again();
  }
  int calls = 0;
  std::function<void()> again;
};

TEST(ACoalescedMail, ArrivesOnceForManyCalls) {
  auto loop = make_loop();
  Counter counter;
  CoalescedMail mail(*loop, Bound::to<&Counter::arrived>(counter));
  for (int i = 0; i < 3; ++i) mail.post();
  loop->drain();
  EXPECT_EQ(1, counter.calls);
  mail.post();
  loop->drain();
  EXPECT_EQ(2, counter.calls);
}

TEST(ACoalescedMail, ArrivesAgainWhenItIsPostedByItsReceiver) {
  auto loop = make_loop();
  Counter counter;
  CoalescedMail mail(*loop, Bound::to<&Counter::arrived>(counter));
  counter.again = [&] {
    if (counter.calls < 3) mail.post();
  };
  mail.post();
  loop->drain();
  EXPECT_EQ(3, counter.calls);
}

// The last write of each thread must be seen: a call that shares a mail that was already read would be lost.
TEST(ACoalescedMail, LosesNoCallAmongThreads) {
  constexpr int kThreads = 3, kCalls = 20'000;
  auto loop = make_loop();
  std::atomic<int> written{0};
  struct Reader {
    void arrived() { seen = written.load(std::memory_order_relaxed); }
    std::atomic<int>& written;
    int seen = 0;
  } reader{written};
  CoalescedMail mail(*loop, Bound::to<&Reader::arrived>(reader));
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int call = 0; call < kCalls; ++call) {
        written.fetch_add(1, std::memory_order_relaxed);
        mail.post();
      }
    });
  }
  turn_until(*loop, [&] { return reader.seen == kThreads * kCalls; });
  for (std::thread& thread : threads) thread.join();
  loop->drain();  // a last write may have been seen before its own mail was posted
}

}  // namespace
}  // namespace carpool::exec
