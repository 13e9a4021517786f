// Mail: the only way into another loop. A node that its owner embeds; nothing is allocated to send it.
//
// While it is in the mail (from post() until arrive()) it belongs to the mailbox: it may be neither posted again nor
// destroyed. Both are asserted.
#pragma once

#include "base/assert.h"
#include "exec/role.h"

namespace carpool::exec {

class Mail {
 public:
  // On the receiving loop's thread. The mail may be posted again, or destroyed, from inside.
  virtual void arrive() LOOP_ONLY = 0;
  // Instead of arrive(), when the mailbox ends with the mail inside. The mail may be destroyed from inside.
  virtual void never_arrives() {}

 protected:
  Mail() = default;
  Mail(const Mail&) = delete;
  Mail& operator=(const Mail&) = delete;
  ~Mail() { CARPOOL_ASSERT(next_mail_ == nullptr); }

 private:
  friend class Mailbox;
  Mail* next_mail_ = nullptr;  // the mailbox's; the last one points to itself, so that null means "not in the mail"
};

}  // namespace carpool::exec
