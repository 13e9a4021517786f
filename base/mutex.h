// Mutex: std::mutex with annotations for clang's thread-safety analysis. For cold paths only: no loop locks one in
// steady state.
#pragma once

#include <mutex>

#include "base/thread_safety.h"

namespace carpool {

class CARPOOL_TSA(capability("mutex")) Mutex final {
 public:
  void lock() CARPOOL_TSA(acquire_capability()) { mutex_.lock(); }
  void unlock() CARPOOL_TSA(release_capability()) { mutex_.unlock(); }
  // The first line of a lambda that is called while the mutex is held: the analysis checks each lambda on its own.
  void assert_held() const CARPOOL_TSA(assert_capability(this)) {}

 private:
  std::mutex mutex_;
};

// Locks for the scope.
template <class Lockable>
class CARPOOL_TSA(scoped_lockable) Held final {
 public:
  explicit Held(Lockable& mutex) CARPOOL_TSA(acquire_capability(mutex)) : mutex_(mutex) { mutex_.lock(); }
  ~Held() CARPOOL_TSA(release_capability()) { mutex_.unlock(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  Lockable& mutex_;
};

}  // namespace carpool
