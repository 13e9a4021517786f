// atomic.h: replaces pool/atomic.h in the explorer's build: every access is a point where another thread may be
// scheduled, and goes through the model's memory.
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
  using At = explore::At;
  using Order = std::memory_order;
  using Part = explore::Sites::Part;

 public:
  Atomic() : Atomic(T{}) {}
  Atomic(T value) { cell_.raw = pack(value); }  // NOLINT(google-explicit-constructor): as std::atomic
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T load(Order order, At at = At::current()) const {
    return unpack(machine().load(cell_, machine().sites.order(order, Part::load, at)));
  }
  void store(T value, Order order, At at = At::current()) {
    machine().store(cell_, pack(value), machine().sites.order(order, Part::store, at));
  }
  T exchange(T value, Order order, At at = At::current()) {
    return change(order, at, [=](T) { return value; });
  }
  T fetch_add(T n, Order order, At at = At::current()) {
    return change(order, at, [=](T was) { return static_cast<T>(was + n); });
  }
  T fetch_sub(T n, Order order, At at = At::current()) {
    return change(order, at, [=](T was) { return static_cast<T>(was - n); });
  }
  T fetch_or(T bits, Order order, At at = At::current()) {
    return change(order, at, [=](T was) { return static_cast<T>(was | bits); });
  }
  T fetch_and(T bits, Order order, At at = At::current()) {
    return change(order, at, [=](T was) { return static_cast<T>(was & bits); });
  }
  bool compare_exchange_strong(T& expected, T wanted, Order order, Order failure, At at = At::current()) {
    std::uint64_t was = pack(expected);
    const bool done =
        machine().compare_exchange(cell_, was, pack(wanted), machine().sites.order(order, Part::success, at),
                                   machine().sites.order(failure, Part::failure, at));
    if (!done) expected = unpack(was);
    return done;
  }
  bool compare_exchange_strong(T& expected, T wanted, Order order, At at = At::current()) {
    return compare_exchange_strong(expected, wanted, order, read_part(order), at);
  }
  bool compare_exchange_weak(T& expected, T wanted, Order order, Order failure, At at = At::current()) {
    return compare_exchange_strong(expected, wanted, order, failure, at);
  }
  bool compare_exchange_weak(T& expected, T wanted, Order order, At at = At::current()) {
    return compare_exchange_strong(expected, wanted, order, read_part(order), at);
  }
  // As a futex: blocks while the newest value is `value`, until a wake().
  void wait_for_change(T value) { machine().wait(cell_, pack(value)); }
  void wake_all() { machine().wake(cell_); }

 private:
  static explore::Machine& machine() { return explore::Machine::the(); }
  static constexpr Order read_part(Order order) {
    if (order == Order::acq_rel) return Order::acquire;
    return order == Order::release ? Order::relaxed : order;
  }
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
  T change(Order asked, const At& at, F f) {
    const Order order = machine().sites.order(asked, Part::rmw, at);
    const T was = unpack(machine().begin_rmw(cell_, order));
    machine().end_rmw(cell_, pack(f(was)), order);
    return was;
  }
  mutable explore::Cell cell_;
};

class CARPOOL_TSA(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  void lock() CARPOOL_TSA(acquire_capability()) { explore::Machine::the().lock(held_, sync_); }
  void unlock() CARPOOL_TSA(release_capability()) { explore::Machine::the().unlock(held_, sync_); }
  void assert_held() const CARPOOL_TSA(assert_capability(this)) {}

 private:
  bool held_ = false;
  explore::Sync sync_;
};

}  // namespace carpool::pool
