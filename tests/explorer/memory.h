// Memory: what the model threads' atomics hold, as C++20 orders it. Each location keeps its last stores in modification
// order. Each thread has a view: per location, the oldest store that it may still read. A load may read any store that
// its view allows; which one is a choice of the schedule. An acquire joins the view that the store released.
//
// Bounds of the model: threads execute in program order, so no load is early (no load buffering); an RMW reads the
// newest store; the order of the seq_cst operations is the order of execution; a location keeps kKept stores.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

namespace carpool::explore {

using When = std::uint64_t;  // a position in a location's modification order
inline constexpr unsigned kMaxThreads = 4;

// View: the past of a thread: stores that it may no longer miss, and the part of each thread that it has seen.
class View {
 public:
  When least(std::uint32_t location) const { return location < least_.size() ? least_[location] : 0; }
  void see(std::uint32_t location, When when);
  void join(const View& other);
  void clear();

  std::array<std::uint32_t, kMaxThreads> clock{};  // for plain memory (races.h)

 private:
  std::vector<When> least_;
};

// The memory of one atomic. Outside a run only `raw` counts.
struct Cell {
  std::uint64_t raw = 0;  // the newest store
  std::uint64_t run = 0;  // in which `location` is valid
  std::uint32_t location = 0;
};

// Sync: an object that synchronizes without being an atomic: a mutex, a mailbox of the scenario.
struct Sync {
  View view;
  std::uint64_t run = 0;
};

// The schedule's part: decides how old a store is.
class Choices {
 public:
  virtual unsigned how_old(unsigned of) = 0;  // 0 .. of - 1; 0: the newest

 protected:
  ~Choices() = default;
};

class Memory {
 public:
  explicit Memory(Choices& choices) : choices_(choices) {}

  void begin_run(unsigned threads);
  std::uint64_t load(unsigned thread, Cell& cell, std::memory_order order);
  void store(unsigned thread, Cell& cell, std::uint64_t value, std::memory_order order);
  // An RMW reads the newest store; write() follows in the same step.
  std::uint64_t read_newest(unsigned thread, Cell& cell, std::memory_order order);
  void write(unsigned thread, Cell& cell, std::uint64_t value, std::memory_order order);
  // Like a load, a compare-exchange that fails may read an old store.
  bool compare_exchange(unsigned thread, Cell& cell, std::uint64_t& expected, std::uint64_t wanted,
                        std::memory_order success, std::memory_order failure);
  void acquire(unsigned thread, Sync& sync);
  void release(unsigned thread, Sync& sync);
  const View& view(unsigned thread) const { return views_[thread]; }

 private:
  static constexpr unsigned kKept = 6;
  struct Store {
    When when = 0;
    std::uint64_t value = 0;
    bool rmw = false;  // directly after the store it read: nothing comes between
    View released;
  };
  struct Location {
    std::array<Store, kKept> stores;  // in modification order
    unsigned count = 0;
    When seq_cst = 0;  // the newest that a seq_cst operation accessed
    Store& newest(unsigned age = 0) { return stores[count - 1 - age]; }
  };
  Location& at(Cell& cell);
  static unsigned readable(Location& location, When least);
  static Store& insert(Location& location, unsigned age);
  unsigned place_of_store(Location& location, When least);
  std::uint64_t read(unsigned thread, Cell& cell, Location& location, const Store& store, std::memory_order order);

  Choices& choices_;
  std::vector<View> views_;
  std::vector<Location> locations_;  // reused by the next run
  std::uint32_t used_ = 0;
  std::uint64_t run_ = 0;
};

}  // namespace carpool::explore
