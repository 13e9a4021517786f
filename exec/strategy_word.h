// StrategyWord: who produces, in one word. Every change is one compare-and-swap of one pure function, so that the
// functions can be walked through all interleavings (tests/unit/exec_strategy_word_test.cc) and the word is all there
// is.
//
//             begin()                      end()
//   IDLE ───────────────► PRODUCING ───────────────► IDLE
//                         │   ▲
//            begin(): no, │   │ end(): no, look once more
//            but look     ▼   │
//            again    REPRODUCING           let_go(helper): either ► IDLE, and the helper will come
//
// Two helpers may be under way, each at most once: `handed`, which has a thread of its own, and `queued`, which waits
// for one. Only a handed one may be relied on by who lets go of the role: a queued one may wait behind tasks that
// block.
#pragma once

#include <atomic>
#include <cstdint>

#include "exec/atomic.h"

namespace carpool::exec {

class StrategyWord {
 public:
  using Word = std::uint32_t;
  enum State : Word { idle = 0, producing = 1, reproducing = 2 };
  enum Helper : Word { handed = 4, queued = 8 };
  struct Step {
    Word word;
    bool yes;
  };

  static constexpr State state(Word w) { return static_cast<State>(w & 3U); }
  static constexpr Word with(Word w, State s) { return (w & ~Word{3}) | s; }

  // There may be something to produce. Yes: produce it; no: somebody does, and will look again.
  static constexpr Step begin_step(Word w) {
    return state(w) == idle ? Step{with(w, producing), true} : Step{with(w, reproducing), false};
  }
  // As begin(), by one who let go before and knows of nothing new.
  static constexpr Step again_step(Word w) {
    return state(w) == idle ? Step{with(w, producing), true} : Step{w, false};
  }
  // Nothing was produced. Yes: the role is free; no: look once more.
  static constexpr Step end_step(Word w) {
    return state(w) == reproducing ? Step{with(w, producing), false} : Step{with(w, idle), true};
  }
  // The producer gives the role away. Yes: the helper is to be called; no: it is under way already.
  static constexpr Step let_go_step(Word w, Helper h) { return {with(w, idle) | h, (w & h) == 0}; }
  // The helper was refused. Yes: the caller has the role back; no: somebody else took it meanwhile.
  static constexpr Step take_back_step(Word w, Helper h) { return again_step(w & ~h); }
  // The helper is here. Yes: it is the producer now; no: there is nothing for it to do.
  static constexpr Step arrive_step(Word w, Helper h) { return again_step(w & ~h); }
  // The helper will never come.
  static constexpr Step drop_step(Word w, Helper h) { return {w & ~h, true}; }
  // Somebody shall produce, not the caller. Yes: call the helper; no: one is on its way, or the producer will look
  // again.
  static constexpr Step dispatch_step(Word w) {
    if (state(w) != idle) return {with(w, reproducing), false};
    return {w | queued, (w & queued) == 0};
  }

  bool begin() { return change(begin_step); }
  bool again() { return change(again_step); }
  bool end() { return change(end_step); }
  bool let_go(Helper h) {
    return change([h](Word w) { return let_go_step(w, h); });
  }
  bool take_back(Helper h) {
    return change([h](Word w) { return take_back_step(w, h); });
  }
  bool arrive(Helper h) {
    return change([h](Word w) { return arrive_step(w, h); });
  }
  void drop(Helper h) {
    change([h](Word w) { return drop_step(w, h); });
  }
  bool dispatch() { return change(dispatch_step); }
  // For the holder of the role, which alone lets go: it called `h`, and the helper has not come. relaxed: only a hint.
  bool awaits(Helper h) const { return (word_.load(std::memory_order_relaxed) & h) != 0; }
  // relaxed: for those who look after everything ended.
  bool at_rest() const { return word_.load(std::memory_order_relaxed) == idle; }

 private:
#if defined(CARPOOL_MUTANT_STRATEGY_WORD)
  static constexpr auto kOrder = std::memory_order_relaxed;  // must be found by TSan: tests/mutants/strategy_word.sh
#else
  // The release of every change pairs with the acquire of every later one: who gets the role sees all that its producer
  // before did, plain data and libuv's included. A change that only leaves a note (REPRODUCING) pairs the same way with
  // the producer's end(): what made the caller say so is seen when it looks once more.
  static constexpr auto kOrder = std::memory_order_acq_rel;
#endif

  template <class Function>
  bool change(Function function) {
    Word w = word_.load(std::memory_order_relaxed);
    for (;;) {
      const Step step = function(w);
      // Also when nothing changes: reading the newest word is what makes "somebody else produces" true.
      if (word_.compare_exchange_weak(w, step.word, kOrder, std::memory_order_relaxed)) return step.yes;
    }
  }

  Atomic<Word> word_{idle};
};

}  // namespace carpool::exec
