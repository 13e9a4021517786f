// Unit tests of the deliveries to one loop: one that throws affects only itself.
#include "pool/queue/delivery_queue.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

class Thrown final : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Noted final : public Delivery {
 public:
  Noted(std::vector<int>& arrived, int number, bool throws) : arrived_(arrived), number_(number), throws_(throws) {}
  void arrive(Instant) override {
    arrived_.push_back(number_);
    if (throws_) throw Thrown(std::to_string(number_));
  }

 private:
  std::vector<int>& arrived_;
  const int number_;
  const bool throws_;
};

TEST(TheDeliveriesToALoop, AllArriveAlthoughSomeThrowAndTheFirstExceptionIsThrown) {
  std::vector<int> arrived;
  Noted first(arrived, 1, false), second(arrived, 2, true), third(arrived, 3, true), fourth(arrived, 4, false);
  DeliveryQueue queue;
  EXPECT_TRUE(queue.push(first));
  for (Noted* one : {&second, &third, &fourth}) EXPECT_FALSE(queue.push(*one));
  try {
    queue.deliver_all({});
    ADD_FAILURE() << "no exception left the queue";
  } catch (const Thrown& thrown) {
    EXPECT_STREQ(thrown.what(), "2");
  }
  EXPECT_EQ(arrived, (std::vector<int>{1, 2, 3, 4}));
  EXPECT_TRUE(queue.empty());
  EXPECT_TRUE(queue.push(first)) << "the receiver must be woken again";
  queue.deliver_all({});
  EXPECT_EQ(arrived.back(), 1);
}

// A borrower whose code fails when its connection comes.
class FailingBorrower final : public Borrower {
 public:
  void on_lease(Lease) override { throw Thrown("on_lease"); }
  void on_refused(Fault) override {}
};

// As the proxy's environment: the messages to a loop are in one queue.
class QueuedWorld final : public test::FakeEnvironment {
 public:
  QueuedWorld() : FakeEnvironment(1) {}
  void deliver(LoopId, Delivery& delivery) override { queue.push(delivery); }
  DeliveryQueue queue;
};

TEST(TheDeliveriesToALoop, ServeTheNextBorrowerAfterOneThatThrew) {
  QueuedWorld world;
  Limits limits;
  limits.size = 2;
  Destination destination(test::origin_named("origin"), limits, world, 1);
  FailingBorrower failing;
  ASSERT_TRUE(std::holds_alternative<Waiting>(destination.borrow(failing, {}, world.now)));
  TestBorrower next(world, 0);
  ASSERT_EQ(next.borrow(destination), State::waiting);
  world.dialed();
  world.dialed();
  EXPECT_THROW(world.queue.deliver_all(world.now), Thrown);
  EXPECT_EQ(next.state, State::leased);
  next.release();
  destination.stop(world.now);
  EXPECT_EQ(destination.snapshot(world.now).alive(), 0U);
}

}  // namespace
}  // namespace carpool::pool
