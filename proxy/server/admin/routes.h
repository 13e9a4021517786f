// The admin endpoint's routes: a request and a view of the program yield a response. No I/O, so that they are tested as
// plain functions.
#pragma once

#include "proxy/server/admin/access_rules.h"
#include "proxy/server/admin/control.h"
#include "proxy/server/admin/request.h"
#include "proxy/server/admin/response.h"
#include "proxy/server/admin/view.h"

namespace carpool::proxy::admin {

Response handle(const AdminRequest& request, const Rules& rules, const AdminView& view, AdminControl& control);

// Returns true if the response walks every pool, reads /proc or renders much: not for a loop that serves requests.
// Liveness and commands are answered at once, even when no thread is free.
bool may_block(const AdminRequest& request);
// Returns true if such a response waits for the loops or simulates. The others compute for milliseconds, so that the
// admin loop may do it itself if no thread is free.
bool takes_long(const AdminRequest& request);

}  // namespace carpool::proxy::admin
