// StrategyWord: the producer role in one word. Every change is one compare-and-swap of a pure function, so that
// tests/unit/exec_strategy_word_test.cc can walk all interleavings. There is no other state.
//
//             begin()                      end()
//   IDLE ───────────────► PRODUCING ───────────────► IDLE
//                         │   ▲
//            begin(): no, │   │ end(): no, produce
//            but check    ▼   │ once more
//            again    REPRODUCING           release_role(helper): either ► IDLE, and the helper will come
//
// Two helpers may be pending, each at most once: `direct`, which has a thread, and `queued`, which waits for one. Only
// a direct one guarantees that the released role is taken up: a queued one may wait behind tasks that block.
#pragma once

#include <atomic>
#include <cstdint>

#include "exec/atomic.h"

namespace carpool::exec {

class StrategyWord {
 public:
  using Word = std::uint32_t;
  enum State : Word { idle = 0, producing = 1, reproducing = 2 };
  enum Helper : Word { direct = 4, queued = 8 };
  struct Step {
    Word word;
    bool yes;
  };

  static constexpr State state(Word w) { return static_cast<State>(w & 3U); }
  static constexpr Word with(Word w, State s) { return (w & ~Word{3}) | s; }

  // There may be something to produce. Yes: the caller produces it. No: the current producer will check again.
  static constexpr Step begin_step(Word w) {
    return state(w) == idle ? Step{with(w, producing), true} : Step{with(w, reproducing), false};
  }
  // As begin(), for a thread that released the role and has no new reason to produce.
  static constexpr Step rejoin_step(Word w) {
    return state(w) == idle ? Step{with(w, producing), true} : Step{w, false};
  }
  // There may be something to produce, and the caller does not produce it now. Yes: the current producer will
  // check again. No: there is none.
  static constexpr Step notify_step(Word w) {
    return state(w) == idle ? Step{w, false} : Step{with(w, reproducing), true};
  }
  // Nothing was produced. Yes: the role is free. No: the caller produces once more.
  static constexpr Step end_step(Word w) {
    return state(w) == reproducing ? Step{with(w, producing), false} : Step{with(w, idle), true};
  }
  // The producer releases the role. Yes: the caller calls the helper. No: a helper is already pending.
  static constexpr Step release_role_step(Word w, Helper h) { return {with(w, idle) | h, (w & h) == 0}; }
  // The helper was rejected. Yes: the caller has the role again. No: another thread took it.
  static constexpr Step reacquire_role_step(Word w, Helper h) { return rejoin_step(w & ~h); }
  // The helper runs. Yes: it is the producer now. No: it has nothing to do.
  static constexpr Step arrive_step(Word w, Helper h) { return rejoin_step(w & ~h); }
  // The helper will never run.
  static constexpr Step drop_step(Word w, Helper h) { return {w & ~h, true}; }
  // A thread other than the caller must produce. Yes: the caller calls the helper. No: one is pending, or the
  // producer will check again.
  static constexpr Step dispatch_step(Word w) {
    if (state(w) != idle) return {with(w, reproducing), false};
    return {w | queued, (w & queued) == 0};
  }

  bool begin() { return change(begin_step); }
  bool rejoin() { return change(rejoin_step); }
  bool notify_producer() { return change(notify_step); }
  bool end() { return change(end_step); }
  bool release_role(Helper h) {
    return change([h](Word w) { return release_role_step(w, h); });
  }
  bool reacquire_role(Helper h) {
    return change([h](Word w) { return reacquire_role_step(w, h); });
  }
  bool arrive(Helper h) {
    return change([h](Word w) { return arrive_step(w, h); });
  }
  void drop(Helper h) {
    change([h](Word w) { return drop_step(w, h); });
  }
  bool dispatch() { return change(dispatch_step); }
  // Called by the holder of the role. Returns true if it called `h`, which has not started. relaxed: a hint.
  bool awaits(Helper h) const { return (word_.load(std::memory_order_relaxed) & h) != 0; }
  // relaxed: for callers after everything has ended.
  bool is_idle() const { return word_.load(std::memory_order_relaxed) == idle; }

 private:
  // The release of every change pairs with the acquire of every later one: the new producer sees everything that its
  // predecessor wrote, plain data and libuv's included. A change that only sets REPRODUCING pairs in the same way with
  // the producer's end(), which sees the caller's writes when it produces once more.
  // tests/mutants/strategy_word.sh: TSan must find a weaker order.
  static constexpr auto kOrder = std::memory_order_acq_rel;

  template <class Function>
  bool change(Function function) {
    Word w = word_.load(std::memory_order_relaxed);
    for (;;) {
      const Step step = function(w);
      // The word is written even if it does not change: only a read of the newest word proves that another thread
      // produces.
      if (word_.compare_exchange_weak(w, step.word, kOrder, std::memory_order_relaxed)) return step.yes;
    }
  }

  Atomic<Word> word_{idle};
};

}  // namespace carpool::exec
