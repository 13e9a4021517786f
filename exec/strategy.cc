#include "exec/strategy.h"

#include <exception>

#include "base/assert.h"

namespace carpool::exec {
namespace {

// A task of a strategy that this thread runs in place; strategies may be nested. A property of this thread's stack.
struct RunningTask {
  explicit RunningTask(const Strategy& s) : strategy(&s), outer(innermost) { innermost = this; }
  ~RunningTask() { innermost = outer; }
  RunningTask(const RunningTask&) = delete;
  RunningTask& operator=(const RunningTask&) = delete;
  static bool for_strategy(const Strategy& wanted) {
    for (const RunningTask* one = innermost; one != nullptr; one = one->outer) {
      if (one->strategy == &wanted) return true;
    }
    return false;
  }

  const Strategy* const strategy;
  const RunningTask* const outer;
  static thread_local const RunningTask* innermost;
};
thread_local const RunningTask* RunningTask::innermost = nullptr;

}  // namespace

StrategyCounts& StrategyCounts::operator+=(const StrategyCounts& other) {
  pc += other.pc, pic += other.pic, pec += other.pec, epc += other.epc;
  took_over += other.took_over, noop += other.noop, missed += other.missed, paused += other.paused;
  rejected += other.rejected, failed += other.failed;
  return *this;
}

Strategy::Strategy(StrategyMode mode, Producer& producer, Executor& executor, TryExecutor* helpers,
                   FailureSink* failures, Instant (*now)(), HelperObserver* observer)
    : mode_(mode),
      producer_(producer),
      executor_(executor),
      helpers_(helpers),
      failures_(failures),
      now_(now),
      observer_(observer) {}

Strategy::~Strategy() {
  CARPOOL_ASSERT(word_.is_idle());
}

void Strategy::produce() {
  if (word_.begin()) run();
}

void Strategy::announce() {
  if (RunningTask::for_strategy(*this)) {
    word_.notify_producer();
  } else {
    produce();
  }
}

bool Strategy::dispatch() {
  if (!word_.dispatch()) return true;
  call_helper();
  TaskPtr helper = exec::lend(helper_queued_);
  // Prefer a reserved thread, which is free now, to one that is free later.
  if (helpers_ != nullptr && mode_ == StrategyMode::adaptive && helpers_->try_execute(helper)) return true;
  return executor_.execute(std::move(helper));
}

void Strategy::help(StrategyWord::Helper kind) {
  if (!word_.arrive(kind)) {
    noop_.fetch_add(1, std::memory_order_relaxed);  // a count: publishes nothing
    return;
  }
  took_over_.add();
  run();
}

void Strategy::run() {
  note_role_taken();
  // The caller's promise holds for the whole call, so it is read once.
  const bool may_lend = !NonBlockingCall::active();
  for (;;) {
    TaskPtr task = next();
    if (task == nullptr) {
      if (word_.end()) return;
    } else if (!consume(std::move(task), may_lend)) {
      return;
    }
  }
}

// An exception means that nothing was produced; the role must not stay with a thread that left by it.
TaskPtr Strategy::next() {
  const char* why = "an exception of an unknown type";
  try {
    return producer_.produce();
  } catch (const std::exception& failure) {
    if (failures_ != nullptr) failures_->on_task_failed("produce", failure.what());
  } catch (...) {
    if (failures_ != nullptr) failures_->on_task_failed("produce", why);
  }
  failed_.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

Strategy::Consumption Strategy::choose(Invocation invocation, bool may_lend) const {
  if (mode_ == StrategyMode::produce_consume || invocation == Invocation::non_blocking) return Consumption::pc;
  const bool either = invocation == Invocation::either;
  const Consumption stay = either ? (may_lend ? Consumption::pic : Consumption::pc) : Consumption::pec;
  switch (mode_) {
    case StrategyMode::execute_produce_consume:
      return may_lend ? Consumption::epc : stay;
    case StrategyMode::adaptive:
      return may_lend && helpers_ != nullptr ? Consumption::epc : stay;
    default:
      return stay;
  }
}

// Returns true if this thread is still, or again, the producer.
bool Strategy::consume(TaskPtr task, bool may_lend) {
  switch (choose(task->invocation(), may_lend)) {
    case Consumption::pc:
      pc_.add();
      run_here(std::move(task));
      return true;
    case Consumption::pic:
      invoke(std::move(task));
      return true;
    case Consumption::pec:
      execute(std::move(task));
      return true;
    case Consumption::epc:
      return run_as_epc(std::move(task));
  }
  return true;
}

bool Strategy::run_as_epc(TaskPtr task) {
  const bool adaptive = mode_ == StrategyMode::adaptive;
  if (!(adaptive ? pass_role() : ask_for_helper())) {
    // Rejected, and this thread has the role again. Plain EPC used the same queue as PEC, so it cannot be queued
    // either.
    if (adaptive) {
      task->invocation() == Invocation::either ? invoke(std::move(task)) : execute(std::move(task));
    } else {
      pc_.add();
      run_here(std::move(task));
    }
    return true;
  }
  epc_.fetch_add(1, std::memory_order_relaxed);  // a count: publishes nothing
  run_here(std::move(task));
  if (!word_.rejoin()) return false;
  note_role_taken();
  return true;
}

// Returns false if the last hand-over was late: another one would leave the loop unattended again.
bool Strategy::may_pass_role() {
  if (!pace_.paused() || pace_.resume(now_())) return true;
  paused_.add();
  return false;
}

void Strategy::note_role_taken() {
  if (pace_.timed()) pace_.role_taken(now_());
}

// Returns true if the role was given away or another thread has it.
bool Strategy::pass_role() {
  if (!may_pass_role()) return false;
  // Normally times the call for a helper, not each task that runs while a helper is pending.
  if (pace_.recently_late() || !word_.awaits(StrategyWord::direct)) pace_.role_released(now_());
  if (!word_.release_role(StrategyWord::direct)) return true;
  call_helper();
  TaskPtr helper = exec::lend(helper_direct_);
  if (helpers_->try_execute(helper)) return true;
  static_cast<void>(helper.release());  // the helper was neither run nor closed, so its bit in word_ is cleared here
  if (observer_ != nullptr) observer_->helper_finished();
  missed_.fetch_add(1, std::memory_order_relaxed);
  if (!word_.reacquire_role(StrategyWord::direct)) return true;
  pace_.role_released(kNever);  // no thread was called, so none was late
  return false;
}

bool Strategy::ask_for_helper() {
  if (!word_.release_role(StrategyWord::queued)) return true;
  call_helper();
  if (executor_.execute(exec::lend(helper_queued_))) return true;
  missed_.fetch_add(1, std::memory_order_relaxed);
  return !word_.rejoin();  // its close() cleared the bit, and it may be called again by now
}

void Strategy::execute(TaskPtr task) {
  pec_.add();
  if (!executor_.execute(std::move(task))) rejected_.add();
}

void Strategy::invoke(TaskPtr task) {
  pic_.add();
  const NonBlockingCall promise;
  run_here(std::move(task));
}

void Strategy::run_here(TaskPtr task) {
  const RunningTask here(*this);
  if (!run_task(std::move(task), failures_)) failed_.fetch_add(1, std::memory_order_relaxed);
}

StrategyCounts Strategy::counts() const {
  constexpr auto kRelaxed = std::memory_order_relaxed;  // counts: they publish nothing
  return {.pc = pc_.read(),
          .pic = pic_.read(),
          .pec = pec_.read(),
          .epc = epc_.load(kRelaxed),
          .took_over = took_over_.read(),
          .noop = noop_.load(kRelaxed),
          .missed = missed_.load(kRelaxed),
          .paused = paused_.read(),
          .rejected = rejected_.read(),
          .failed = failed_.load(kRelaxed)};
}

}  // namespace carpool::exec
