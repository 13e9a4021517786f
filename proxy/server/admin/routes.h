// The admin endpoint's routes: a request and a view of the program yield a response. No I/O, so that they are tested as
// plain functions.
#pragma once

#include "proxy/server/admin/access_rules.h"
#include "proxy/server/admin/control.h"
#include "proxy/server/admin/request.h"
#include "proxy/server/admin/response.h"
#include "proxy/server/admin/route_kind.h"
#include "proxy/server/admin/view.h"

namespace carpool::proxy::admin {

Response handle(const AdminRequest& request, const Rules& rules, const AdminView& view, AdminControl& control);

}  // namespace carpool::proxy::admin
