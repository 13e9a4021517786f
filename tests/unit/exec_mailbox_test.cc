// Unit tests of Mailbox: order, coalescing of wake-ups, and what a mail may do to itself on arrival.
#include "exec/mailbox.h"

#include <memory>
#include <utility>
#include <vector>

#include "exec/posted_function.h"
#include "tests/unit/exec_support.h"

namespace carpool::exec {
namespace {

using testing::OnArrive;

TEST(Mailbox, DeliversInTheOrderPosted) {
  assume_on_loop();
  std::vector<int> seen;
  OnArrive one([&] { seen.push_back(1); }), two([&] { seen.push_back(2); }), three([&] { seen.push_back(3); });
  Mailbox box;
  EXPECT_TRUE(box.push(one));
  EXPECT_FALSE(box.push(two));
  EXPECT_FALSE(box.push(three));
  EXPECT_EQ(3U, box.deliver(100));
  EXPECT_EQ((std::vector{1, 2, 3}), seen);
  EXPECT_FALSE(box.has_mail());
}

TEST(Mailbox, AsksForOneWakeUpUntilItIsEmptied) {
  assume_on_loop();
  OnArrive one([] {}), two([] {});
  Mailbox box;
  EXPECT_TRUE(box.push(one));
  EXPECT_FALSE(box.push(two));
  box.deliver(100);
  EXPECT_TRUE(box.push(one));
  box.deliver(100);
}

TEST(Mailbox, KeepsWhatIsOverTheLimitInOrder) {
  assume_on_loop();
  std::vector<int> seen;
  OnArrive one([&] { seen.push_back(1); }), two([&] { seen.push_back(2); }), three([&] { seen.push_back(3); });
  Mailbox box;
  (void)box.push(one);
  (void)box.push(two);
  EXPECT_EQ(1U, box.deliver(1));
  EXPECT_TRUE(box.has_mail());
  EXPECT_TRUE(box.push(three)) << "the batch under way says nothing about the stack";
  EXPECT_EQ(1U, box.deliver(100));
  EXPECT_EQ(1U, box.deliver(100));
  EXPECT_EQ((std::vector{1, 2, 3}), seen);
}

TEST(Mailbox, LeavesWhatIsPostedDuringDeliveryForTheNextOne) {
  assume_on_loop();
  Mailbox box;
  int arrivals = 0;
  OnArrive* self = nullptr;
  OnArrive again([&] {
    if (++arrivals < 3) (void)box.push(*self);
  });
  self = &again;
  (void)box.push(again);
  EXPECT_EQ(1U, box.deliver(100));
  EXPECT_EQ(1U, box.deliver(100));
  EXPECT_EQ(1U, box.deliver(100));
  EXPECT_EQ(3, arrivals);
}

TEST(Mailbox, LetsAMailDestroyItselfWhileItArrives) {
  assume_on_loop();
  Mailbox box;
  std::unique_ptr<OnArrive> mail;
  mail = std::make_unique<OnArrive>([&] { auto last = std::move(mail); });
  (void)box.push(*mail);
  box.deliver(100);
  EXPECT_EQ(nullptr, mail);
}

TEST(Mailbox, LetsGoOfWhatNeverArrived) {
  OnArrive one([] {}), two([] {});
  {
    Mailbox box;
    (void)box.push(one);
    (void)box.push(two);
  }
  Mailbox other;
  EXPECT_TRUE(other.push(one));
}

TEST(MailboxDeathTest, RefusesAMailThatIsInTheMail) {
  OnArrive one([] {});
  Mailbox box;
  (void)box.push(one);
  EXPECT_DEATH((void)box.push(one), "impossible state");
}

// The mails of one sender carry consecutive numbers and must arrive in that order whatever the others do.
TEST(Mailbox, KeepsEachSendersOrderUnderContention) {
  assume_on_loop();
  constexpr int kSenders = 3, kEach = 30'000;
  Mailbox box;
  int next[kSenders] = {};
  bool in_order = true;
  struct Numbered final : Mail {
    void arrive() override {
      *in_order &= next[sender] == number;
      ++next[sender];
    }
    int sender = 0, number = 0;
    int* next = nullptr;
    bool* in_order = nullptr;
  };
  std::vector<Numbered> mails(kSenders * kEach);
  std::vector<std::thread> senders;
  for (int s = 0; s < kSenders; ++s) {
    senders.emplace_back([&, s] {
      for (int n = 0; n < kEach; ++n) {
        Numbered& mail = mails[static_cast<std::size_t>(s * kEach + n)];
        mail.sender = s;
        mail.number = n;
        mail.next = next;
        mail.in_order = &in_order;
        (void)box.push(mail);
      }
    });
  }
  for (std::size_t delivered = 0; delivered < mails.size();) delivered += box.deliver(1000);
  for (std::thread& sender : senders) sender.join();
  EXPECT_TRUE(in_order);
  for (const int count : next) EXPECT_EQ(kEach, count);
}

TEST(APostedFunction, EndsWithWhatItOwnsWhenItHasArrived) {
  assume_on_loop();
  auto owned = std::make_shared<int>(7);
  int seen = 0;
  Mailbox box;
  auto work = [&seen, owned] { seen = *owned; };
  static_cast<void>(box.push(*std::make_unique<PostedFunction<decltype(work)>>(std::move(work)).release()));
  EXPECT_EQ(2, owned.use_count());
  box.deliver(100);
  EXPECT_EQ(7, seen);
  EXPECT_EQ(1, owned.use_count());
}

TEST(APostedFunction, EndsUndoneWithTheMailboxThatItNeverLeft) {
  auto owned = std::make_shared<int>(7);
  bool done = false;
  {
    Mailbox box;
    auto work = [&done, owned] { done = true; };
    static_cast<void>(box.push(*std::make_unique<PostedFunction<decltype(work)>>(std::move(work)).release()));
  }
  EXPECT_FALSE(done);
  EXPECT_EQ(1, owned.use_count());
}

}  // namespace
}  // namespace carpool::exec
