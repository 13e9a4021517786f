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
  Outcome outcome;
  for (;;) {
    const std::unique_ptr<Scenario> scenario = make();
    scenario_ = scenario.get();
    run_once();
    if (std::string wrong = scenario->verdict(); !wrong.empty()) fail(wrong);
    ++outcome.runs;
    if (bounds.random) choices_.clear();
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
  at_ = preemptions_ = delays_ = 0;
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
  running_ = true;
  current_ = choose(static_cast<unsigned>(threads_.size()));
  swapcontext(&outside_, &threads_[current_].context);
  running_ = false;
  for (Thread& thread : threads_) flush(thread);
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
  maybe_flush(was);
  current_ = others.thread[next - 1];
  swapcontext(&was.context, &threads_[current_].context);
}

// The current thread is blocked or done.
void Machine::leave() {
  Thread& was = threads_[current_];
  maybe_flush(was);
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

void Machine::maybe_flush(Thread& thread) {
  if (thread.buffer.empty()) return;
  if (delays_ < bounds_.delays && choose(2) == 1) {
    ++delays_;
  } else {
    flush(thread);
  }
}

void Machine::flush(Thread& thread) {
  for (; !thread.buffer.empty(); thread.buffer.pop_front())
    thread.buffer.front().cell->raw = thread.buffer.front().value;
}

std::uint64_t Machine::load(const Cell& cell) const {
  if (running_) {
    const auto& buffer = threads_[current_].buffer;
    for (auto at = buffer.rbegin(); at != buffer.rend(); ++at) {
      if (at->cell == &cell) return at->value;
    }
  }
  return cell.raw;
}

void Machine::store(Cell& cell, std::uint64_t value, bool seq_cst) {
  if (!running_) {
    cell.raw = value;
    return;
  }
  flush_rmws_of_others(cell);
  threads_[current_].buffer.push_back({&cell, value, false});
  if (seq_cst && !bounds_.weaken) flush(current_);
}

std::uint64_t Machine::begin_rmw(Cell& cell) {
  if (running_) flush_rmws_of_others(cell);
  return load(cell);
}

void Machine::end_rmw(Cell& cell, std::uint64_t value, bool seq_cst) {
  if (!running_) {
    cell.raw = value;
    return;
  }
  threads_[current_].buffer.push_back({&cell, value, true});
  if (seq_cst && !bounds_.weaken) flush(current_);
}

// Modification order: a thread that modifies a cell now comes after the RMWs of it that were done already.
void Machine::flush_rmws_of_others(Cell& cell) {
  for (unsigned n = 0; n < threads_.size(); ++n) {
    if (n == current_) continue;
    auto& buffer = threads_[n].buffer;
    std::size_t last = buffer.size();
    while (last != 0 && !(buffer[last - 1].rmw && buffer[last - 1].cell == &cell)) --last;
    for (; last != 0; --last, buffer.pop_front()) buffer.front().cell->raw = buffer.front().value;
  }
}

void Machine::lock(const void* mutex, int& holder, int& last) {
  if (!running_) return;
  point();
  while (holder != 0) {
    threads_[current_].waits_for = mutex;
    leave();
  }
  holder = static_cast<int>(current_) + 1;
  // acquire: sees all stores of the former holder; its own stores may still be buffered.
  if (last != 0 && last != holder && static_cast<unsigned>(last) <= threads_.size())
    flush(static_cast<unsigned>(last) - 1);
}

void Machine::unlock(int& holder, int& last) {
  if (!running_) return;
  last = holder;
  holder = 0;
  for (Thread& thread : threads_) thread.waits_for = nullptr;  // they retry
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
