#include "tests/explorer/machine.h"

#include <cstdio>
#include <cstdlib>

namespace carpool::explore {

Machine& Machine::the() {
  static Machine machine;
  return machine;
}

Machine::Outcome Machine::explore(const Bounds& bounds, const std::function<std::unique_ptr<Scenario>()>& make) {
  bounds_ = bounds;
  choices_.clear();
  random_.seed(bounds.seed);
  sites.begin_scenario();
  Outcome outcome;
  for (;;) {
    const std::unique_ptr<Scenario> scenario = make();
    scenario_ = scenario.get();
    run_once();
    if (std::string wrong = scenario->verdict(); !wrong.empty()) fail(wrong);
    ++outcome.runs;
    if (bounds.random) choices_.clear();
    if (sites.nothing_weakened() && outcome.runs == kRunsToMeet) return outcome;
    if (!bounds.random && !advance()) {
      outcome.complete = true;
      return outcome;
    }
    if (bounds.most != 0 && outcome.runs == bounds.most) return outcome;
  }
}

// Advances to the next list of choices in order. Returns false after the last one.
bool Machine::advance() {
  while (!choices_.empty() && choices_.back().taken + 1 == choices_.back().of) choices_.pop_back();
  if (choices_.empty()) return false;
  ++choices_.back().taken;
  return true;
}

unsigned Machine::choose(unsigned of) {
  if (of == 1) return 0;
  if (at_ == choices_.size()) choices_.push_back({bounds_.random ? static_cast<unsigned>(random_() % of) : 0, of});
  if (choices_[at_].of != of) fail("the scenario does not repeat itself");
  return choices_[at_++].taken;
}

void Machine::run_once() {
  static constexpr std::size_t kStack = 256 * 1024;
  at_ = preemptions_ = old_ = 0;
  steps_ = 0;
  threads_.resize(scenario_->threads());
  for (Thread& thread : threads_) {
    thread.stack.resize(kStack);
    thread.done = false;
    thread.waits_for = nullptr;
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.data();
    thread.context.uc_stack.ss_size = kStack;
    thread.context.uc_link = nullptr;
    makecontext(&thread.context, &Machine::entry, 0);
  }
  memory_.begin_run(scenario_->threads());
  races_.begin_run();
  running_ = true;
  exploring_ = this;
  current_ = choose(static_cast<unsigned>(threads_.size()));
  swapcontext(&outside_, &threads_[current_].context);
  exploring_ = nullptr;
  running_ = false;
}

void Machine::entry() {
  Machine& machine = the();
  machine.scenario_->run(machine.current_);
  machine.threads_[machine.current_].done = true;
  machine.leave();
}

Machine::Others Machine::able() const {
  Others able;
  for (unsigned n = 0; n < threads_.size(); ++n) {
    if (n != current_ && !threads_[n].done && threads_[n].waits_for == nullptr) able.thread[able.count++] = n;
  }
  return able;
}

void Machine::point() {
  if (!running_) return;
  if (++steps_ > 20000) fail("a thread does not come to an end");
  if (bounds_.random ? random_() % 8 != 0 : preemptions_ == bounds_.preemptions) return;
  const Others others = able();
  if (others.count == 0) return;
  const unsigned next = choose(others.count + 1);
  if (next == 0) return;
  ++preemptions_;
  Thread& was = threads_[current_];
  current_ = others.thread[next - 1];
  swapcontext(&was.context, &threads_[current_].context);
}

// The current thread is blocked or done.
void Machine::leave() {
  Thread& was = threads_[current_];
  const Others others = able();
  if (others.count == 0) {
    for (const Thread& thread : threads_) {
      if (!thread.done) fail("a deadlock");
    }
    setcontext(&outside_);
  }
  current_ = others.thread[choose(others.count)];
  swapcontext(&was.context, &threads_[current_].context);
}

unsigned Machine::how_old(unsigned of) {
  if (of == 1 || (bounds_.random ? random_() % 4 != 0 : old_ == bounds_.old)) return 0;
  const unsigned age = choose(of);
  if (age != 0) ++old_;
  return age;
}

std::uint64_t Machine::load(Cell& cell, std::memory_order order) {
  if (!running_) return cell.raw;
  point();
  return memory_.load(current_, cell, order);
}

void Machine::store(Cell& cell, std::uint64_t value, std::memory_order order) {
  if (!running_) {
    cell.raw = value;
    return;
  }
  point();
  memory_.store(current_, cell, value, order);
}

std::uint64_t Machine::begin_rmw(Cell& cell, std::memory_order order) {
  if (!running_) return cell.raw;
  point();
  return memory_.read_newest(current_, cell, order);
}

void Machine::end_rmw(Cell& cell, std::uint64_t value, std::memory_order order) {
  if (running_) return memory_.write(current_, cell, value, order);
  cell.raw = value;
}

bool Machine::compare_exchange(Cell& cell, std::uint64_t& expected, std::uint64_t wanted, std::memory_order success,
                               std::memory_order failure) {
  if (running_) {
    point();
    return memory_.compare_exchange(current_, cell, expected, wanted, success, failure);
  }
  const bool same = cell.raw == expected;
  expected = cell.raw;
  if (same) cell.raw = wanted;
  return same;
}

void Machine::block(const void* on) {
  threads_[current_].waits_for = on;
  leave();
}

void Machine::unblock(const void* on) {
  for (Thread& thread : threads_) {
    if (thread.waits_for == on) thread.waits_for = nullptr;  // it tries again
  }
}

void Machine::lock(bool& held, Sync& sync) {
  if (!running_) return;
  point();
  while (held) block(&sync);
  held = true;
  memory_.acquire(current_, sync);
}

void Machine::unlock(bool& held, Sync& sync) {
  if (!running_) return;
  memory_.release(current_, sync);
  held = false;
  unblock(&sync);
}

// The kernel compares the newest value: its own lock orders the comparison against a wake.
void Machine::wait(Cell& cell, std::uint64_t value) {
  point();
  if (cell.raw == value) block(&cell);
}

void Machine::wake(Cell& cell) {
  point();
  unblock(&cell);
}

void Machine::release(Sync& sync) {
  if (running_) memory_.release(current_, sync);
}

void Machine::acquire(Sync& sync) {
  if (running_) memory_.acquire(current_, sync);
}

void Machine::plain(const void* at, std::size_t size, bool write, const void* code) {
  if (!running_) return;
  if (const void* other = races_.access(at, size, write, current_, memory_.view(current_).clock, code)) {
    fail(races_.describe(code, other));
  }
}

void Machine::forget(const void* at, std::size_t size) {
  if (running_) races_.forget(at, size);
}

std::string Machine::schedule() const {
  std::string text;
  for (std::size_t n = 0; n < at_; ++n) text += (n == 0 ? "" : ",") + std::to_string(choices_[n].taken);
  return text;
}

void Machine::fail(const std::string& what) {
  std::printf("FAILED: %s: %s\nschedule %s\n", name, what.c_str(), schedule().c_str());
  std::fflush(stdout);
  std::_Exit(1);
}

}  // namespace carpool::explore
