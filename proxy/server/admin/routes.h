// The admin endpoint's routes: functions from a request and a view of the program to a response. They do no I/O, so
// that they are tested as plain functions.
#pragma once

#include "proxy/server/admin/request.h"
#include "proxy/server/admin/response.h"

namespace carpool::proxy::admin {

class AdminControl;
class AdminView;
struct Rules;

Response handle(const AdminRequest& request, const Rules& rules, const AdminView& view, AdminControl& control);

}  // namespace carpool::proxy::admin
