// Machine: the explorer's scheduler. It runs a few model threads on one real thread, with a schedule that is a list of
// choices: which thread runs next, and which store a load reads (memory.h). It repeats a scenario with the next list
// until all lists within the bounds are done (after CHESS: a bounded number of preemptions and of old reads; a switch
// from a blocked thread is free).
#pragma once

#include <ucontext.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/explorer/memory.h"
#include "tests/explorer/races.h"
#include "tests/explorer/sites.h"

namespace carpool::explore {

struct Bounds {
  unsigned preemptions = 2;
  unsigned old = 1;        // how often a load reads another than the newest store
  std::uint64_t most = 0;  // runs; 0: unlimited
  bool random = false;     // choose randomly instead of in order
  std::uint64_t seed = 1;
};

// The threads of one run and its verdict. Constructed for each run outside the model: the constructor is not explored.
class Scenario {
 public:
  virtual ~Scenario() = default;
  virtual unsigned threads() const = 0;
  virtual void run(unsigned thread) = 0;
  // Called when all threads are done; it reads the newest stores. Returns an empty string if every check holds.
  virtual std::string verdict() = 0;
};

class Machine final : private Choices {
 public:
  static Machine& the();
  // The machine while a run explores; null outside of runs, where plain memory is not checked.
  static Machine* exploring() { return exploring_; }
  bool running() const { return running_; }
  unsigned thread() const { return current_; }

  struct Outcome {
    std::uint64_t runs = 0;
    bool complete = false;
    std::string wrong;  // the failure, with the schedule
  };
  static constexpr std::uint64_t kRunsToMeet = 300;  // a control gives up a scenario that does not reach its site
  Outcome explore(const Bounds& bounds, const std::function<std::unique_ptr<Scenario>()>& make);
  // Reports that the current run is wrong and exits with 1: the remaining state is inconsistent.
  [[noreturn]] void fail(const std::string& what);
  std::string schedule() const;
  const char* name = "";

  Sites sites;

  // ---- for atomic.h ----
  std::uint64_t load(Cell& cell, std::memory_order order);
  void store(Cell& cell, std::uint64_t value, std::memory_order order);
  std::uint64_t begin_rmw(Cell& cell, std::memory_order order);
  void end_rmw(Cell& cell, std::uint64_t value, std::memory_order order);
  bool compare_exchange(Cell& cell, std::uint64_t& expected, std::uint64_t wanted, std::memory_order success,
                        std::memory_order failure);
  void lock(bool& held, Sync& sync);
  void unlock(bool& held, Sync& sync);
  void wait(Cell& cell, std::uint64_t value);
  void wake(Cell& cell);

  // ---- for the scenarios ----
  // A synchronization by the scenario itself, as posting and receiving mail is.
  void release(Sync& sync);
  void acquire(Sync& sync);
  // An access to plain memory: a race fails the run.
  void plain(const void* at, std::size_t size, bool write, const void* code);
  void forget(const void* at, std::size_t size);  // the memory is freed

 private:
  struct Thread {
    ucontext_t context{};
    std::vector<char> stack;
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
  void point();  // another thread may be scheduled
  void block(const void* on);
  void unblock(const void* on);
  unsigned how_old(unsigned of) override;
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
  unsigned current_ = 0, preemptions_ = 0, old_ = 0;
  std::uint64_t steps_ = 0;
  bool running_ = false;
  static inline Machine* exploring_ = nullptr;
  ucontext_t outside_{};
  Scenario* scenario_ = nullptr;
  Memory memory_{*this};
  Races races_;
  std::mt19937_64 random_;
};

}  // namespace carpool::explore
