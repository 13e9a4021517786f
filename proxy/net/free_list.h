// FreeList: recycles objects, with the memory that they own, which a loop uses for the duration of a call or an event.
// Each use has its own object, so nested uses do not interfere, and nothing is allocated in steady state.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace carpool::proxy {

template <class T>
class FreeList {
 public:
  FreeList() { spares_.reserve(kKept); }

  std::unique_ptr<T> take() {
    if (spares_.empty()) return std::make_unique<T>();
    std::unique_ptr<T> one = std::move(spares_.back());
    spares_.pop_back();
    return one;
  }
  void give_back(std::unique_ptr<T> one) {
    if (spares_.size() < kKept) spares_.push_back(std::move(one));
  }
  bool empty() const { return spares_.empty(); }

  // Handle: owns one object and returns it on destruction.
  class Handle {
   public:
    explicit Handle(FreeList& spares) : spares_(spares), one_(spares.take()) {}
    ~Handle() { spares_.give_back(std::move(one_)); }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    T& operator*() { return *one_; }
    T* operator->() { return one_.get(); }

   private:
    FreeList& spares_;
    std::unique_ptr<T> one_;
  };
  Handle lend() { return Handle(*this); }

 private:
  static constexpr std::size_t kKept = 16;
  std::vector<std::unique_ptr<T>> spares_;  // last in, first out: its memory is warm
};

}  // namespace carpool::proxy
