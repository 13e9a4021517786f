// Scenarios of the reserved slots and of the strategy's word: waiting threads, threads that take them, and the producer
// role.
#include <array>
#include <string>

#include "exec/reserved_slots.h"
#include "exec/strategy_word.h"
#include "tests/explorer/scenarios.h"

namespace carpool::explore {
namespace {

using exec::StrategyWord;

// ---- the reserved slots ----

struct Waiter {
  int taken = 0, woken = 0;
  Plain state;  // written before the offer, read by the thread that takes it
};

class Places : public Scenario {
 public:
  using Reserve = exec::ReservedSlots<Waiter>;
  unsigned threads() const override { return threads_; }

 protected:
  Places(unsigned threads, unsigned capacity, unsigned min = 0) : places(capacity, min), threads_(threads) {}
  void take() {
    if (Waiter* waiter = places.take()) {
      waiter->state.write();
      ++waiter->taken;
    }
  }
  void stop() {
    places.stop([](Waiter& waiter) {
      waiter.state.write();
      ++waiter.woken;
    });
  }
  Reserve::Slot* offer(Waiter& waiter) {
    waiter.state.write();
    return places.offer(waiter);
  }
  // The counters match the contents of the slots.
  std::string counted() { return places.counted() == places.waiting() ? std::string() : "the count is not what waits"; }

  Reserve places;
  std::array<Waiter, 2> waiters;

 private:
  const unsigned threads_;
};

class TwoTakeOneThread : public Places {
 public:
  TwoTakeOneThread() : Places(3, 2) {}
  void run(unsigned thread) override { thread == 0 ? static_cast<void>(offer(waiters[0])) : take(); }
  std::string verdict() override {
    if (waiters[0].taken + static_cast<int>(places.waiting()) != 1) return "one thread was taken twice, or lost";
    return counted();
  }
};

class TakenWhileItLeaves : public Places {
 public:
  TakenWhileItLeaves() : Places(3, 1), place_(*places.offer(waiters[0])) {}
  void run(unsigned thread) override {
    if (thread != 0) return take();
    left_ = places.leave(place_, waiters[0]);
  }
  std::string verdict() override {
    if (waiters[0].taken + (left_ ? 1 : 0) != 1) return "it left with what it was taken for, or neither";
    return counted();
  }

 private:
  Reserve::Slot& place_;
  bool left_ = false;
};

class TwoLeaveAndOneMustStay : public Places {
 public:
  TwoLeaveAndOneMustStay() : Places(2, 2, 1), at_{places.offer(waiters[0]), places.offer(waiters[1])} {}
  void run(unsigned thread) override { left_[thread] = places.leave(*at_[thread], waiters[thread]); }
  std::string verdict() override {
    if (left_[0] + left_[1] != 1 || places.waiting() != 1) return "not one left and one stayed";
    return counted();
  }

 private:
  std::array<Reserve::Slot*, 2> at_;
  std::array<int, 2> left_{};
};

// No thread waits in stopped slots: a thread that offered itself was woken, or saw the stop and returned.
class OfferMeetsStop : public Places {
 public:
  OfferMeetsStop() : Places(2, 1) {}
  void run(unsigned thread) override {
    if (thread == 1) return stop();
    stays_ = offer(waiters[0]) != nullptr;
  }
  std::string verdict() override {
    if (places.waiting() != 0) return "a thread waits in a reserve that has stopped";
    if (stays_ != (waiters[0].woken == 1)) return "it stays unwoken, or was woken after it went";
    return counted();
  }

 private:
  bool stays_ = false;
};

class StopMeetsTakeAndLeave : public Places {
 public:
  StopMeetsTakeAndLeave() : Places(3, 1), place_(*places.offer(waiters[0])) {}
  void run(unsigned thread) override {
    if (thread == 0) return stop();
    if (thread == 1) return take();
    left_ = places.leave(place_, waiters[0]);
  }
  std::string verdict() override {
    if (waiters[0].taken + waiters[0].woken + (left_ ? 1 : 0) != 1) return "not exactly one got it out";
    return counted();
  }

 private:
  Reserve::Slot& place_;
  bool left_ = false;
};

// Two misses request threads while one arrives: never are more pending than allowed, and the count ends at zero.
class AskedForAtOnce : public Places {
 public:
  AskedForAtOnce() : Places(3, 2) { places.try_request(1); }
  void run(unsigned thread) override {
    if (thread == 0) {
      places.request_ended();
      offer(waiters[0]);
    } else if (places.try_request(1)) {
      if (places.pending() > 1) wrong_ = "more are under way than may be";
      places.request_ended();
    }
  }
  std::string verdict() override {
    if (places.pending() != 0) return "a thread that came is still counted as under way";
    return wrong_.empty() ? counted() : wrong_;
  }

 private:
  std::string wrong_;
};

// ---- the strategy's word ----

// Work is announced, and the thread with the producer role produces it. `role_` is accessed by the producer only: the
// word must order it. The other plain numbers belong to the scenario: the machine switches only at atomics, so they are
// exact.
class Production : public Scenario {
 public:
  unsigned threads() const override { return threads_; }
  std::string verdict() override {
    if (!wrong_.empty()) return wrong_;
    if (produced_ != came_) return "work was forgotten";
    return word.is_idle() ? std::string() : "the role was not given back";
  }

 protected:
  explicit Production(unsigned threads) : threads_(threads) {}
  void add_work() {
    ++came_;
    work_.fetch_add(1, std::memory_order_relaxed);
  }
  void produce() {
    if (producers_++ != 0) wrong_ = "two produce at once";
    for (;;) {
      role_.write();
      if (work_.load(std::memory_order_relaxed) != 0) {
        work_.fetch_sub(1, std::memory_order_relaxed);
        ++produced_;
        continue;
      }
      --producers_;
      if (word.end()) return;
      if (producers_++ != 0) wrong_ = "two produce at once";
    }
  }

  StrategyWord word;

 private:
  const unsigned threads_;
  exec::Atomic<unsigned> work_{0};
  Plain role_;
  int producers_ = 0, produced_ = 0, came_ = 0;
  std::string wrong_;
};

// The producer finds nothing and releases the role while work is announced twice.
class WorkComesAsTheProducerGoes : public Production {
 public:
  WorkComesAsTheProducerGoes() : Production(3) { word.begin(); }
  void run(unsigned thread) override {
    if (thread != 0) {
      add_work();
      if (!word.begin()) return;
    }
    produce();
  }
};

// The producer released the role and runs its task; the helper, newly announced work and the producer's return
// coincide.
class TheHelperComesAsItReturns : public Production {
 public:
  TheHelperComesAsItReturns() : Production(3) {
    word.begin();
    add_work();
    word.release_role(StrategyWord::direct);
  }
  void run(unsigned thread) override {
    const auto has_role = [&] {
      if (thread == 0) return word.rejoin();
      if (thread == 1) return word.arrive(StrategyWord::direct);
      add_work();
      return word.begin();
    };
    if (has_role()) produce();
  }
};

// The helper is rejected while other threads find the role free.
class TheHelperIsRefused : public Production {
 public:
  TheHelperIsRefused() : Production(3) {
    word.begin();
    add_work();
    word.release_role(StrategyWord::queued);
  }
  void run(unsigned thread) override {
    const auto has_role = [&] {
      if (thread == 0) return word.reacquire_role(StrategyWord::queued);
      add_work();
      return word.begin();
    };
    if (has_role()) produce();
  }
};

}  // namespace

std::vector<Named> exec_scenarios() {
  return {
      named<TwoTakeOneThread>("reserve: two take one thread"),
      named<TakenWhileItLeaves>("reserve: taken while it leaves"),
      named<TwoLeaveAndOneMustStay>("reserve: two leave and one must stay"),
      named<OfferMeetsStop>("reserve: an offer meets the stop"),
      named<StopMeetsTakeAndLeave>("reserve: a stop meets a taker and a leaver"),
      named<AskedForAtOnce>("reserve: threads asked for at once"),
      named<WorkComesAsTheProducerGoes>("word: work comes as the producer goes"),
      named<TheHelperComesAsItReturns>("word: the helper comes as the producer returns"),
      named<TheHelperIsRefused>("word: the helper is refused"),
  };
}

}  // namespace carpool::explore
