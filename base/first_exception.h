// FirstException: calls the steps of a batch so that one that throws does not prevent the others. The first exception
// is thrown again after the last step.
#pragma once

#include <exception>
#include <new>
#include <utility>

namespace carpool {

class FirstException {
 public:
  // std::bad_alloc ends the batch at once: on a loop it ends the program (docs/decisions/0012).
  template <class Step>
  void call(Step&& step) {
    try {
      step();
    } catch (const std::bad_alloc&) {
      throw;
    } catch (...) {
      if (first_ == nullptr) first_ = std::current_exception();
    }
  }
  // Must be called after the last step.
  void rethrow() {
    if (first_ != nullptr) std::rethrow_exception(std::exchange(first_, nullptr));
  }

 private:
  std::exception_ptr first_;
};

}  // namespace carpool
