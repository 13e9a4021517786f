// DeferredDeleter: destroys objects at the end of the turn in which they ended, when none of their functions is
// running.
#pragma once

#include <memory>

#include "base/intrusive.h"
#include "exec/bound.h"
#include "exec/loop.h"

namespace carpool::exec {

// T has a ListHook<Tag>, which must not be in use.
template <class T, class Tag>
class DeferredDeleter final : private Deferred {
 public:
  // `destroyed`: called after each round; may be empty.
  explicit DeferredDeleter(Loop& loop, Bound destroyed = {}) : loop_(loop), destroyed_(destroyed) {}
  ~DeferredDeleter() { destroy_all(); }
  DeferredDeleter(const DeferredDeleter&) = delete;
  DeferredDeleter& operator=(const DeferredDeleter&) = delete;

  void destroy_later(std::unique_ptr<T> object) LOOP_ONLY {
    ended_.push_back(*object.release());
    if (!Deferred::linked()) loop_.defer(*this);
  }
  void destroy_all() {
    while (!ended_.empty()) const std::unique_ptr<T> dies(&ended_.pop_front());
  }

 private:
  void run() override LOOP_ONLY {
    destroy_all();
    if (destroyed_) destroyed_();
  }
  Loop& loop_;
  const Bound destroyed_;
  List<T, Tag> ended_;
};

}  // namespace carpool::exec
