#include "exec/timer_heap.h"

#include <algorithm>

#include "base/assert.h"

namespace carpool::exec {

TimerHeap::~TimerHeap() {
  for (const Node& node : heap_) {
    node.timer->place_ = 0;
    node.timer->deadline_ = node.timer->key_ = kNever;
  }
}

void TimerHeap::arm(Timer& timer, Instant deadline) {
  if (deadline == kNever) return remove(timer);
  // A past deadline set by a callback waits for the next run: otherwise two such timers would run forever.
  const Instant key = std::max(deadline, running_ == Instant::min() ? deadline : running_ + Duration(1));
  if (timer.place_ == 0) heap_.push_back({});  // may throw: the timer is unchanged so far
  timer.deadline_ = deadline;
  if (timer.place_ == 0) {
    timer.key_ = key;
    sift_up(heap_.size() - 1, {key, &timer});
  } else if (key < timer.key_) {
    move_key(timer, key);
  }
}

void TimerHeap::remove(Timer& timer) {
  timer.deadline_ = kNever;
  if (timer.place_ == 0) return;
  const std::size_t at = timer.place_ - 1;
  CARPOOL_ASSERT(at < heap_.size() && heap_[at].timer == &timer);
  timer.place_ = 0;
  timer.key_ = kNever;
  const Node last = heap_.back();
  heap_.pop_back();
  if (at == heap_.size()) return;
  place(at, last);
  move_key(*last.timer, last.key);
}

void TimerHeap::run_due(Instant now, std::size_t limit, CallbackGuard& guard) {
  if (next() > now) return;
  CARPOOL_ASSERT(running_ == Instant::min());
  running_ = now;
  for (; limit != 0 && next() <= now; --limit) {
    Timer& timer = *heap_.front().timer;
    if (timer.deadline_ == kNever) {
      remove(timer);
    } else if (timer.deadline_ > timer.key_) {
      move_key(timer, timer.deadline_);
    } else {
      const Bound callback = timer.callback_;
      remove(timer);
      guard.call(callback);  // `timer` may be destroyed
    }
  }
  running_ = Instant::min();
}

void TimerHeap::run_due(Instant now) {
  assume_on_loop();
  CallbackGuard guard;
  run_due(now, SIZE_MAX, guard);
  guard.rethrow();
}

void TimerHeap::place(std::size_t at, Node node) {
  heap_[at] = node;
  node.timer->place_ = static_cast<std::uint32_t>(at + 1);
}

void TimerHeap::move_key(Timer& timer, Instant key) {
  timer.key_ = key;
  const std::size_t at = timer.place_ - 1;
  if (at > 0 && key < heap_[(at - 1) / kArity].key) {
    sift_up(at, {key, &timer});
  } else {
    sift_down(at, {key, &timer});
  }
}

void TimerHeap::sift_up(std::size_t at, Node node) {
  while (at > 0) {
    const std::size_t parent = (at - 1) / kArity;
    if (heap_[parent].key <= node.key) break;
    place(at, heap_[parent]);
    at = parent;
  }
  place(at, node);
}

void TimerHeap::sift_down(std::size_t at, Node node) {
  for (;;) {
    const std::size_t first = at * kArity + 1;
    if (first >= heap_.size()) break;
    std::size_t least = first;
    for (std::size_t child = first + 1; child < std::min(first + kArity, heap_.size()); ++child) {
      if (heap_[child].key < heap_[least].key) least = child;
    }
    if (node.key <= heap_[least].key) break;
    place(at, heap_[least]);
    at = least;
  }
  place(at, node);
}

}  // namespace carpool::exec
