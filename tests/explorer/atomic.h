// atomic.h: replaces pool/core/atomic.h in the explorer's build: every access is a point where another thread may be
// scheduled, and goes through the machine's store buffers.
#pragma once

#include <atomic>
#include <cstring>
#include <type_traits>

#include "base/mutex.h"
#include "tests/explorer/machine.h"

namespace carpool::pool {

template <class T>
class Atomic {
  static_assert(sizeof(T) <= sizeof(std::uint64_t) && std::is_trivially_copyable_v<T>);

 public:
  Atomic() : Atomic(T{}) {}
  Atomic(T value) { cell_.raw = pack(value); }  // NOLINT(google-explicit-constructor): as std::atomic
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T load(std::memory_order) const {
    machine().point();
    return unpack(machine().load(cell_));
  }
  void store(T value, std::memory_order order) {
    machine().point();
    machine().store(cell_, pack(value), order == std::memory_order_seq_cst);
  }
  T exchange(T value, std::memory_order order) {
    return change(order, [=](T) { return value; });
  }
  T fetch_add(T n, std::memory_order order) {
    return change(order, [=](T was) { return static_cast<T>(was + n); });
  }
  T fetch_sub(T n, std::memory_order order) {
    return change(order, [=](T was) { return static_cast<T>(was - n); });
  }
  T fetch_or(T bits, std::memory_order order) {
    return change(order, [=](T was) { return static_cast<T>(was | bits); });
  }
  T fetch_and(T bits, std::memory_order order) {
    return change(order, [=](T was) { return static_cast<T>(was & bits); });
  }
  bool compare_exchange_strong(T& expected, T wanted, std::memory_order order, std::memory_order) {
    machine().point();
    const T was = unpack(machine().begin_rmw(cell_));
    if (was != expected) {
      expected = was;
      return false;
    }
    machine().end_rmw(cell_, pack(wanted), order == std::memory_order_seq_cst);
    return true;
  }
  bool compare_exchange_strong(T& expected, T wanted, std::memory_order order) {
    return compare_exchange_strong(expected, wanted, order, order);
  }
  bool compare_exchange_weak(T& expected, T wanted, std::memory_order order, std::memory_order failure) {
    return compare_exchange_strong(expected, wanted, order, failure);
  }
  bool compare_exchange_weak(T& expected, T wanted, std::memory_order order) {
    return compare_exchange_strong(expected, wanted, order, order);
  }

 private:
  static explore::Machine& machine() { return explore::Machine::the(); }
  static std::uint64_t pack(T value) {
    std::uint64_t raw = 0;
    std::memcpy(&raw, &value, sizeof(value));
    return raw;
  }
  static T unpack(std::uint64_t raw) {
    T value;
    std::memcpy(&value, &raw, sizeof(value));
    return value;
  }
  template <class F>
  T change(std::memory_order order, F f) {
    machine().point();
    const T was = unpack(machine().begin_rmw(cell_));
    machine().end_rmw(cell_, pack(f(was)), order == std::memory_order_seq_cst);
    return was;
  }
  explore::Cell cell_;
};

class CARPOOL_TSA(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  void lock() CARPOOL_TSA(acquire_capability()) { explore::Machine::the().lock(this, holder_, last_); }
  void unlock() CARPOOL_TSA(release_capability()) { explore::Machine::the().unlock(holder_, last_); }
  void assert_held() const CARPOOL_TSA(assert_capability(this)) {}

 private:
  int holder_ = 0, last_ = 0;  // threads, from 1
};

}  // namespace carpool::pool
