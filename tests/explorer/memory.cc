#include "tests/explorer/memory.h"

#include <algorithm>
#include <utility>

namespace carpool::explore {
namespace {

constexpr When kGap = When{1} << 32;  // for stores that come in between

bool acquires(std::memory_order order) {
  return order != std::memory_order_relaxed && order != std::memory_order_release;
}
bool releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}

}  // namespace

void View::see(std::uint32_t location, When when) {
  if (location >= least_.size()) least_.resize(location + 1);
  least_[location] = std::max(least_[location], when);
}

void View::join(const View& other) {
  if (other.least_.size() > least_.size()) least_.resize(other.least_.size());
  for (std::size_t n = 0; n < other.least_.size(); ++n) least_[n] = std::max(least_[n], other.least_[n]);
  for (unsigned n = 0; n < kMaxThreads; ++n) clock[n] = std::max(clock[n], other.clock[n]);
}

void View::clear() {
  least_.clear();
  clock = {};
}

void Memory::begin_run(unsigned threads) {
  ++run_;
  used_ = 0;
  views_.resize(threads);
  for (unsigned n = 0; n < threads; ++n) {
    views_[n].clear();
    views_[n].clock[n] = 1;
  }
}

Memory::Location& Memory::at(Cell& cell) {
  if (cell.run == run_) return locations_[cell.location];
  cell.run = run_;
  cell.location = used_++;
  if (used_ > locations_.size()) locations_.emplace_back();
  Location& location = locations_[cell.location];
  location.count = 1;
  location.seq_cst = 0;
  location.stores[0].when = kGap;
  location.stores[0].value = cell.raw;
  location.stores[0].rmw = false;
  location.stores[0].released.clear();
  return location;
}

// The number of stores that a reader may read: the newest ones.
unsigned Memory::readable(Location& location, When least) {
  unsigned count = 1;
  while (count < location.count && location.newest(count - 1).when > least) ++count;
  return count;
}

std::uint64_t Memory::read(unsigned thread, Cell& cell, Location& location, const Store& store,
                           std::memory_order order) {
  views_[thread].see(cell.location, store.when);
  if (acquires(order)) views_[thread].join(store.released);
  if (order == std::memory_order_seq_cst) location.seq_cst = std::max(location.seq_cst, store.when);
  return store.value;
}

std::uint64_t Memory::load(unsigned thread, Cell& cell, std::memory_order order) {
  Location& location = at(cell);
  When least = views_[thread].least(cell.location);
  if (order == std::memory_order_seq_cst) least = std::max(least, location.seq_cst);
  const unsigned age = choices_.how_old(readable(location, least));
  return read(thread, cell, location, location.newest(age), order);
}

// Inserts a position for a store that `age` kept stores follow.
Memory::Store& Memory::insert(Location& location, unsigned age) {
  if (location.count == kKept) {
    std::rotate(location.stores.begin(), location.stores.begin() + 1, location.stores.end());
  } else {
    ++location.count;
  }
  for (unsigned n = 0; n < age; ++n) std::swap(location.newest(n), location.newest(n + 1));
  const When before = location.newest(age + 1).when;
  location.newest(age).when = age == 0 ? before + kGap : before + (location.newest(age - 1).when - before) / 2;
  return location.newest(age);
}

// A plain store may come before newer ones of other threads that its thread has not seen, but not before an RMW that
// directly follows what it read.
unsigned Memory::place_of_store(Location& location, When least) {
  std::array<unsigned, kKept> ages{};
  unsigned count = 1;
  for (unsigned age = 1; age + 1 < kKept && age < location.count && location.newest(age - 1).when > least; ++age) {
    if (!location.newest(age - 1).rmw) ages[count++] = age;
  }
  return ages[choices_.how_old(count)];
}

void Memory::store(unsigned thread, Cell& cell, std::uint64_t value, std::memory_order order) {
  Location& location = at(cell);
  View& view = views_[thread];
  const bool seq_cst = order == std::memory_order_seq_cst;
  Store& store = insert(location, seq_cst ? 0 : place_of_store(location, view.least(cell.location)));
  store.value = value;
  store.rmw = false;
  view.see(cell.location, store.when);
  store.released.clear();
  if (releases(order)) {
    store.released = view;
    ++view.clock[thread];
  }
  if (seq_cst) location.seq_cst = store.when;
  cell.raw = location.newest().value;
}

std::uint64_t Memory::read_newest(unsigned thread, Cell& cell, std::memory_order order) {
  Location& location = at(cell);
  return read(thread, cell, location, location.newest(), order);
}

void Memory::write(unsigned thread, Cell& cell, std::uint64_t value, std::memory_order order) {
  Location& location = at(cell);
  View& view = views_[thread];
  Store& store = insert(location, 0);
  store.value = value;
  store.rmw = true;
  view.see(cell.location, store.when);
  store.released = location.newest(1).released;  // an RMW continues the release sequence
  if (releases(order)) {
    store.released.join(view);
    ++view.clock[thread];
  }
  if (order == std::memory_order_seq_cst) location.seq_cst = store.when;
  cell.raw = value;
}

bool Memory::compare_exchange(unsigned thread, Cell& cell, std::uint64_t& expected, std::uint64_t wanted,
                              std::memory_order success, std::memory_order failure) {
  Location& location = at(cell);
  When least = views_[thread].least(cell.location);
  if (failure == std::memory_order_seq_cst) least = std::max(least, location.seq_cst);
  std::array<unsigned, kKept> ages{};
  unsigned count = 1;
  for (unsigned age = 1; age < readable(location, least); ++age) {
    if (location.newest(age).value != expected) ages[count++] = age;
  }
  const unsigned age = ages[choices_.how_old(count)];
  if (location.newest(age).value != expected) {
    expected = read(thread, cell, location, location.newest(age), failure);
    return false;
  }
  read(thread, cell, location, location.newest(), success);
  write(thread, cell, wanted, success);
  return true;
}

void Memory::acquire(unsigned thread, Sync& sync) {
  if (sync.run == run_) views_[thread].join(sync.view);
}

void Memory::release(unsigned thread, Sync& sync) {
  if (sync.run != run_) sync.view.clear();
  sync.run = run_;
  sync.view.join(views_[thread]);
  ++views_[thread].clock[thread];
}

}  // namespace carpool::explore
