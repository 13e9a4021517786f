// Mail: a message to another loop, the only way to reach it. An intrusive node: posting allocates nothing.
//
// From post() until arrive() it belongs to the mailbox: it must be neither posted again nor destroyed. Both are
// asserted.
#pragma once

#include "base/assert.h"
#include "exec/role.h"

namespace carpool::exec {

class Mail {
 public:
  // Called on the receiving loop's thread. May post the mail again or destroy it.
  virtual void arrive() LOOP_ONLY = 0;
  // Called instead of arrive() if the mailbox is destroyed with the mail inside. May destroy the mail.
  virtual void never_arrives() {}

 protected:
  Mail() = default;
  Mail(const Mail&) = delete;
  Mail& operator=(const Mail&) = delete;
  ~Mail() { CARPOOL_ASSERT(next_mail_ == nullptr); }

 private:
  friend class Mailbox;
  Mail* next_mail_ = nullptr;  // the mailbox's link; the last one points to itself, so null means "not posted"
};

}  // namespace carpool::exec
