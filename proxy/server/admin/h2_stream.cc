#include "proxy/server/admin/h2_stream.h"

#include <utility>

#include "proxy/server/admin/gzip.h"

namespace carpool::proxy {

AdminH2Stream::AdminH2Stream(Owner& connection, http::H2Stream& of, http::RequestHead& head, Instant until)
    : stream(&of), deadline(until), connection_(connection) {
  std::swap(head_, head);
  head_bytes_ = head_.fields.bytes() + head_.target.size() + head_.authority.size();
  if (connection_.may_hold(head_bytes_)) return;
  no_room = true;
  std::string method = std::move(head_.method);  // kept, because a response to HEAD has no body
  head_ = {};
  head_.method = std::move(method);
  head_bytes_ = 0;
}

admin::AdminRequest AdminH2Stream::request() const {
  return admin::make_request(head_, body_);
}

// A request must name one host: of two, one could come from the page and the other from the browser.
std::optional<admin::Response> AdminH2Stream::refusal() const {
  if (too_long) return admin::error_response(413, "the body is too long");
  if (no_room) return admin::busy_response("too many bytes of unanswered requests", "1");
  const std::size_t hosts = head_.fields.count(http::FieldName::host);
  if (hosts > 1) return admin::error_response(400, "more than one Host");
  const bool both = hosts == 1 && !head_.authority.empty();
  if (both && head_.fields.get("Host") != head_.authority)
    return admin::error_response(400, "Host differs from :authority");
  return std::nullopt;
}

// ---- events of the session, for the holder of the role ----

// Answers a request over a limit at once, because the rest of it is not needed.
void AdminH2Stream::on_body(std::string_view bytes) {
  connection_.consume(*this, bytes.size());
  too_long = too_long || body_.size() + bytes.size() > kMaxBody;
  no_room = no_room || (!too_long && !connection_.may_hold(bytes.size()));
  if (!too_long && !no_room) {
    body_.append(bytes);
    return;
  }
  connection_.release_held(body_.size());
  std::string().swap(body_);  // an assignment would keep the memory
  connection_.on_complete(*this);
}

void AdminH2Stream::on_end() {
  complete = true;
  connection_.on_complete(*this);
}

void AdminH2Stream::on_sent(std::size_t) {
  connection_.on_sent(*this);
}

void AdminH2Stream::on_closed(http::H2Error) {
  stream = nullptr;
  connection_.on_closed(*this);
}

// ---- the task ----

// The stream may be destroyed as soon as it is returned.
void AdminH2Stream::run_task() {
  try {
    produce_response();
    made = Made::well;
  } catch (...) {
    made = Made::failed;
    connection_.return_from_task(*this);
    throw;
  }
  connection_.return_from_task(*this);
}

void AdminH2Stream::produce_response() {
  switch (work) {
    case Work::step:
      return body->step();
    case Work::compress:
      return admin::compress(response);
    case Work::respond:
    case Work::command:
      break;
  }
  const admin::AdminRequest asked = request();
  response = connection_.handle(asked);
  body = admin::Body::begin(asked, response);
  if (body || !admin::should_compress(asked, response)) return;
  to_compress = exec::NonBlockingCall::active();
  if (!to_compress) admin::compress(response);
}

void AdminH2Stream::refuse_task() {
  made = Made::refused;
  connection_.return_from_task(*this);
}

void AdminH2Stream::ToLoop::arrive() {
  owner.connection_.respond_on_loop(owner);
}

void AdminH2Stream::ToConnection::arrive() {
  owner.connection_.on_returned(owner);
}

}  // namespace carpool::proxy
