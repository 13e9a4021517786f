// PostedFunction: work sent once to another loop. A mail whose sender goes on and embeds nothing: it owns what the work
// needs, and itself; it ends when it has arrived, or with the mailbox that it never left. One allocation a send: not
// for the steady request path.
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

// Any thread. `work()` runs on the loop's thread in a turn to come; say LOOP_ONLY after its parameters.
template <class Work>
void send(Loop& loop, Work work) {
  loop.post(*std::make_unique<PostedFunction<Work>>(std::move(work)).release());
}

}  // namespace carpool::exec
