// Mutex: std::mutex with annotations for clang's thread-safety analysis. For cold paths only: no loop locks one in
// steady state.
#pragma once

#include <mutex>

#include "exec/role.h"

namespace carpool::exec {

class CARPOOL_TSA(capability("mutex")) Mutex {
 public:
  void lock() CARPOOL_TSA(acquire_capability()) { mutex_.lock(); }
  void unlock() CARPOOL_TSA(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

// Locks for the scope.
class CARPOOL_TSA(scoped_lockable) Held {
 public:
  explicit Held(Mutex& mutex) CARPOOL_TSA(acquire_capability(mutex)) : mutex_(mutex) { mutex_.lock(); }
  ~Held() CARPOOL_TSA(release_capability()) { mutex_.unlock(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace carpool::exec

#define GUARDED_BY(mutex) CARPOOL_TSA(guarded_by(mutex))
#define HOLDS(mutex) CARPOOL_TSA(requires_capability(mutex))
