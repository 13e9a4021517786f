// AdminSession, tasks: computes slow responses off the loop, step by step if they are long, and posts the result back.
#include <algorithm>

#include "proxy/server/admin/admin_session.h"
#include "proxy/server/admin/gzip.h"
#include "proxy/server/admin/routes.h"

namespace carpool::proxy {

namespace {
constexpr Duration kAgain = std::chrono::milliseconds(5);  // pause before a rejected step is retried
}  // namespace

// Called when the client has read the previous step. The response's deadline is not extended.
void AdminSession::make_step() {
  owner_.mark_working(*this);
  producing_ = true;
  made_ = TaskResult::well;
  http_.wait_until(deadline_);
  owner_.in_background(exec::lend(making_));  // a blocking task for each step would hand the loop over each time
}

admin::Response AdminSession::made_at_once() {
  if (request().too_long()) return admin::error_response(413, "the body is too long");
  admin::Response response =
      admin::handle(admin::make_request(request().head(), request().body()), rules_, backend_.view, backend_.control);
  if (response.stream && !owner_.may_subscribe()) return admin::busy_response("too many clients of /events", "10");
  return response;
}

// Runs on the task's thread. The session may be destroyed as soon as the result is posted.
void AdminSession::make() {
  bool compresses = false;
  try {
    if (streaming_) {
      body_->step();
    } else {
      const admin::AdminRequest asked = admin::make_request(request().head(), request().body());
      response_ = admin::handle(asked, rules_, backend_.view, backend_.control);
      body_ = admin::Body::begin(asked, response_);
      compresses = !body_ && admin::should_compress(asked, response_);
    }
  } catch (...) {
    post_result(TaskResult::failed);
    throw;
  }
  if (!compresses) return post_result(TaskResult::well);
  owner_.in_background(exec::lend(compressing_));
}

void AdminSession::not_made() {
  if (streaming_) return post_result(TaskResult::refused);
  response_ = admin::busy_response("too many blocking tasks", "1");
  post_result(TaskResult::well);
}

void AdminSession::compress() {
  try {
    admin::compress(response_);
  } catch (...) {
    post_result(TaskResult::failed);
    throw;
  }
  post_result(TaskResult::well);
}

void AdminSession::post_result(TaskResult made) {
  made_ = made;
  loop_.post(home_);
}

void AdminSession::answered() {
  producing_ = false;
  if (http_.over()) return owner_.ended(*this);
  switch (made_) {
    case TaskResult::failed:
      return end();
    case TaskResult::refused:  // the end is missing, so the response does not look complete if the timeout passes first
      return http_.wait_until(std::min(deadline_, loop_.now() + kAgain));
    case TaskResult::well:
      break;
  }
  streaming_ ? send_step() : respond();
  if (!later_) http_.advance();
}

}  // namespace carpool::proxy
