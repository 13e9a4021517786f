// PostedFunction: a function sent once to another loop. A mail that owns itself and the function's data; it is deleted
// after it arrives, or with the mailbox. One allocation per post: not for the steady request path.
#pragma once

#include <memory>
#include <utility>

#include "exec/loop.h"
#include "exec/mail.h"

namespace carpool::exec {

template <class Work>
class PostedFunction final : public Mail {
 public:
  explicit PostedFunction(Work work) : work_(std::move(work)) {}
  void arrive() override LOOP_ONLY {
    const std::unique_ptr<PostedFunction> self(this);  // was released by send()
    work_();
  }
  void never_arrives() override { const std::unique_ptr<PostedFunction> self(this); }

 private:
  Work work_;
};

// Any thread. Calls `work()` on the loop's thread in a later turn; declare it LOOP_ONLY.
template <class Work>
void send(Loop& loop, Work work) {
  loop.post(*std::make_unique<PostedFunction<Work>>(std::move(work)).release());
}

}  // namespace carpool::exec
