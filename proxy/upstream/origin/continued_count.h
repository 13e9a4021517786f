// ContinuedCount: a number that the runtimes of an origin count together or one after the other, so that it goes on
// where a reload changes other settings. Its users name the memory order.
#pragma once

#include <atomic>
#include <cstdint>

namespace carpool::proxy {

class ContinuedCount {
 public:
  ContinuedCount() = default;
  ContinuedCount(const ContinuedCount&) = delete;
  ContinuedCount& operator=(const ContinuedCount&) = delete;

  // Continues the number of `before`. Must be called before loops use this one. `outlives`: `before` exists as long as
  // this one, so that both count together while some loops still use it.
  void follow(ContinuedCount& before, bool outlives) {
    if (outlives) number_ = before.number_;
    if (!outlives) number_->store(before.number_->load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  std::atomic<std::int64_t>* operator->() { return number_; }

 private:
  std::atomic<std::int64_t> own_{0};
  std::atomic<std::int64_t>* number_ = &own_;
};

}  // namespace carpool::proxy
