// Machine: the explorer's scheduler. It runs a few model threads on one real thread, with a store buffer each, and a
// schedule that is a list of choices. It repeats a scenario with the next list until all lists within the bounds are
// done (after CHESS: a bounded number of preemptions; a switch from a blocked thread is free).
//
// Memory: TSO, weakened as C++ allows. A store, or an RMW that is not seq_cst, may stay in its thread's
// buffer, invisible to others, past later loads of that thread; a seq_cst RMW or store empties the buffer first. An RMW
// is still atomic: the next RMW of the same cell by anyone makes the pending one visible first. Loads are never early.
#pragma once

#include <ucontext.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace carpool::explore {

// The memory of one atomic.
struct Cell {
  std::uint64_t raw = 0;
};

struct Bounds {
  unsigned preemptions = 2;
  unsigned delays = 1;     // how often a preempted thread keeps its store buffer
  std::uint64_t most = 0;  // runs; 0: unlimited
  bool random = false;     // choose randomly instead of in order
  std::uint64_t seed = 1;
  bool weaken = false;  // negative control: every seq_cst RMW and store is only acq_rel
};

// The threads of one run and its verdict. Constructed for each run outside the model: the constructor is not explored.
class Scenario {
 public:
  virtual ~Scenario() = default;
  virtual unsigned threads() const = 0;
  virtual void run(unsigned thread) = 0;
  // Called when all threads are done and all buffers are empty. Returns an empty string if all is well.
  virtual std::string verdict() = 0;
};

class Machine {
 public:
  static Machine& the();
  bool running() const { return running_; }
  unsigned thread() const { return current_; }

  struct Outcome {
    std::uint64_t runs = 0;
    bool complete = false;
    std::string wrong;  // the failure, with the schedule
  };
  Outcome explore(const Bounds& bounds, const std::function<std::unique_ptr<Scenario>()>& make);
  // Reports that the current run is wrong and exits with 1: the remaining state is inconsistent.
  [[noreturn]] void fail(const std::string& what);
  std::string schedule() const;
  const char* name = "";

  // ---- for atomic.h ----
  void point();  // another thread may be scheduled
  std::uint64_t load(const Cell& cell) const;
  void store(Cell& cell, std::uint64_t value, bool seq_cst);
  std::uint64_t begin_rmw(Cell& cell);
  void end_rmw(Cell& cell, std::uint64_t value, bool seq_cst);
  void lock(const void* mutex, int& holder, int& last);
  void unlock(int& holder, int& last);
  // A release by the scenario itself, as posting mail does.
  void publish() {
    if (running_) flush(current_);
  }

 private:
  struct Pending {
    Cell* cell;
    std::uint64_t value;
    bool rmw;
  };
  struct Thread {
    ucontext_t context{};
    std::vector<char> stack;
    std::deque<Pending> buffer;
    const void* waits_for = nullptr;
    bool done = true;
  };
  struct Choice {
    unsigned taken, of;
  };

  void run_once();
  bool advance();
  unsigned choose(unsigned of);
  void leave();  // schedules the next thread
  void maybe_flush(Thread& thread);
  void flush(unsigned thread) { flush(threads_[thread]); }
  static void flush(Thread& thread);
  void flush_rmws_of_others(Cell& cell);
  static void entry();
  // The threads that could run instead of the current one. Plain data, because a finished thread never returns to
  // destroy it.
  struct Others {
    std::array<unsigned, 8> thread{};
    unsigned count = 0;
  };
  Others able() const;

  Bounds bounds_;
  std::vector<Thread> threads_;
  std::vector<Choice> choices_;
  std::size_t at_ = 0;
  unsigned current_ = 0, preemptions_ = 0, delays_ = 0;
  std::uint64_t steps_ = 0;
  bool running_ = false;
  ucontext_t outside_{};
  Scenario* scenario_ = nullptr;
  std::mt19937_64 random_;
};

}  // namespace carpool::explore
