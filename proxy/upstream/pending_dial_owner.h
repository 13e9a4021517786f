// PendingDialOwner: the Dialer, as a PendingDial sees it.
#pragma once

#include "exec/role.h"

namespace carpool::proxy {

class PendingDial;
struct AttemptTag;       // links the dials of one Dialer
struct AttemptSlotTag;   // orders them by the entry that they fill
struct AttemptOrderTag;  // orders those of a destination by age

class PendingDialOwner {
 public:
  virtual void finished(PendingDial& dial) LOOP_ONLY = 0;  // destroys it

 protected:
  ~PendingDialOwner() = default;
};

}  // namespace carpool::proxy
