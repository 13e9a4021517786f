// Unit tests of Signal: signals arrive on the loop's thread, as often as they are raised, until the Signal is
// destroyed.
#include "exec/uv/signal.h"

#include <csignal>

#include "tests/unit/exec_support.h"

namespace carpool::exec {
namespace {

using namespace testing;

TEST(Signal, CallsBackOnTheLoop) {
  auto loop = make_loop();
  int seen = 0;
  auto signal = on_signal(
      *loop, SIGUSR1, [](void* owner, int number) { *static_cast<int*>(owner) += number; }, &seen);
  ASSERT_TRUE(signal);
  ::raise(SIGUSR1);
  turn_until(*loop, [&] { return seen == SIGUSR1; });
  ::raise(SIGUSR1);
  turn_until(*loop, [&] { return seen == 2 * SIGUSR1; });
}

TEST(Signal, MayEndInItsOwnCallback) {
  auto loop = make_loop();
  std::unique_ptr<Signal> signal;
  auto made = on_signal(
      *loop, SIGUSR1, [](void* owner, int) { static_cast<std::unique_ptr<Signal>*>(owner)->reset(); }, &signal);
  ASSERT_TRUE(made);
  signal = std::make_unique<Signal>(std::move(*made));
  ::raise(SIGUSR1);
  turn_until(*loop, [&] { return signal == nullptr; });
}

TEST(Signal, SaysWhatCannotBeCaught) {
  auto loop = make_loop();
  auto signal = on_signal(
      *loop, SIGKILL, [](void*, int) {}, nullptr);
  ASSERT_FALSE(signal);
  EXPECT_NE(std::string::npos, signal.fault().detail.find("signal 9"));
}

TEST(Signals, AreAllReceivedOrNone) {
  auto loop = make_loop();
  int seen = 0;
  const auto add = [](void* owner, int number) { *static_cast<int*>(owner) += number; };
  const auto signals = on_signals(*loop, {SIGUSR1, SIGUSR2}, add, &seen);
  ASSERT_TRUE(signals);
  ::raise(SIGUSR1);
  ::raise(SIGUSR2);
  turn_until(*loop, [&] { return seen == SIGUSR1 + SIGUSR2; });
  const auto refused = on_signals(*loop, {SIGUSR1, SIGKILL}, add, &seen);
  ASSERT_FALSE(refused) << "a program that cannot receive a signal must not start without it";
  EXPECT_NE(std::string::npos, refused.fault().detail.find("signal 9"));
}

}  // namespace
}  // namespace carpool::exec
