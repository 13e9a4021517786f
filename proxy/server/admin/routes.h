// The admin endpoint's routes: a request and a view of the program make an answer. No I/O, so that all of it is tested
// as plain functions. It reads /proc and walks every pool: not for a loop that others wait for.
#pragma once

#include "proxy/server/admin/access_rules.h"
#include "proxy/server/admin/control.h"
#include "proxy/server/admin/request.h"
#include "proxy/server/admin/response.h"
#include "proxy/server/admin/view.h"

namespace carpool::proxy::admin {

Response handle(const AdminRequest& request, const Rules& rules, const AdminView& view, AdminControl& control);

// Answering it walks every pool, reads /proc or renders much: not for a loop that others wait for. What tells whether
// the program lives, and what changes something, answers at once, also when no thread is free.
bool may_block(const AdminRequest& request);

}  // namespace carpool::proxy::admin
