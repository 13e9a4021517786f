// Result<T>: a value or a Fault. No monads: callers test it and return early.
// (std::expected exists in no mode of clang 14, see docs/decisions.)
#pragma once

#include <utility>
#include <variant>

#include "base/assert.h"
#include "base/fault.h"

namespace carpool {

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Fault fault) : state_(std::in_place_index<1>, std::move(fault)) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() {
    CARPOOL_ASSERT(*this);
    return *std::get_if<0>(&state_);
  }
  const T& operator*() const {
    CARPOOL_ASSERT(*this);
    return *std::get_if<0>(&state_);
  }
  T* operator->() { return &**this; }
  const T* operator->() const { return &**this; }
  const Fault& fault() const {
    CARPOOL_ASSERT(!*this);
    return *std::get_if<1>(&state_);
  }
  Fault take_fault() {
    CARPOOL_ASSERT(!*this);
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  std::variant<T, Fault> state_;
};

// The Result of a function without a value: `return {};` is success.
struct Done {};
using Status = Result<Done>;

}  // namespace carpool
