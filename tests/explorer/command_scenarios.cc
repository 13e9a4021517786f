// Scenarios of operator commands: drain(), reconnect() and a smaller size reach a connection that becomes idle at that
// moment.
#include "tests/explorer/destination_scenario.h"
#include "tests/explorer/scenarios.h"

namespace carpool::explore {
namespace {

// The connection closes once, because of the command.
class CommandStage : public DestinationScenario {
 public:
  std::string verdict() override {
    std::string wrong = run_to_completion();
    const bool closed = world.closed == std::vector<pool::CloseCause>{expected_};
    return wrong.empty() && !closed ? "the command missed a connection" : wrong;
  }

 protected:
  explicit CommandStage(pool::CloseCause expected) : DestinationScenario(2, cap(1)), expected_(expected) {}

 private:
  const pool::CloseCause expected_;
};

class ReleaseMeetsDrain : public CommandStage {
 public:
  ReleaseMeetsDrain() : CommandStage(pool::CloseCause::drained) {}
  void run(unsigned thread) override {
    if (thread == 0) return holder_.release();
    destination().drain(world.now);
  }

 private:
  TestBorrower& holder_ = leased(0);
};

class InspectionMeetsDrain : public CommandStage {
 public:
  InspectionMeetsDrain() : CommandStage(pool::CloseCause::drained) {}
  void run(unsigned thread) override {
    if (thread == 0) return handle({wire_.index, wire_.generation, false}, true);
    destination().drain(world.now);
  }

 private:
  FakeConnection& wire_ = idle_connection(0);
};

class ReleaseMeetsReconnect : public CommandStage {
 public:
  ReleaseMeetsReconnect() : CommandStage(pool::CloseCause::reconnect) {}
  void run(unsigned thread) override {
    if (thread == 0) return holder_.release();
    destination().reconnect(world.now);
  }

 private:
  TestBorrower& holder_ = leased(0);
};

// One of two borrowed connections is released while the size becomes one: it closes although the other is in use.
class ReleaseMeetsSmallerSize : public DestinationScenario {
 public:
  ReleaseMeetsSmallerSize() : DestinationScenario(2, cap(2)) {}
  void run(unsigned thread) override {
    if (thread == 0) return first_.release();
    destination().set_limits(cap(1), world.now);
  }
  std::string verdict() override {
    world.deliver_all();
    const bool small = world.live.size() == 1;
    std::string wrong = run_to_completion();
    return wrong.empty() && !small ? "an idle connection is left above the size" : wrong;
  }

 private:
  TestBorrower& first_ = leased(0);
  [[maybe_unused]] TestBorrower& second_ = leased(0);
};

}  // namespace

std::vector<Named> command_scenarios() {
  return {named<ReleaseMeetsDrain>("a release meets a drain"),
          named<InspectionMeetsDrain>("an inspection meets a drain"),
          named<ReleaseMeetsReconnect>("a release meets a reconnect"),
          named<ReleaseMeetsSmallerSize>("a release meets a smaller size")};
}

}  // namespace carpool::explore
