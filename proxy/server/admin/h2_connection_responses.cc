// AdminH2Connection, responses: the thread that produces each, how it is sent, and when its stream is freed.
#include <algorithm>
#include <string>
#include <utility>

#include "exec/task_limit.h"
#include "proxy/http/h2/fields.h"
#include "proxy/http/http_date.h"
#include "proxy/server/admin/h2_connection.h"
#include "proxy/server/admin/route_kind.h"

namespace carpool::proxy {

namespace {
// Limit of commands that the loop executes, and of responses that may be long and are produced or not read yet. Further
// requests wait.
constexpr std::uint32_t kMaxInProgress = 16;
constexpr Duration kRetryStep = std::chrono::milliseconds(5);  // pause before a rejected step is retried
}  // namespace

// Requests are dispatched outside of the session's calls: a handler may throw, and a stream that was reset in the same
// read costs nothing.
void AdminH2Connection::dispatch_complete() {
  while (!complete_.empty()) {
    AdminH2Stream& stream = complete_.pop_front();
    try {
      dispatch(stream);
    } catch (...) {
      session_.reset(*std::exchange(stream.stream, nullptr), http::H2Error::internal_error);
      drop(stream);
      throw;
    }
  }
}

void AdminH2Connection::dispatch(AdminH2Stream& stream) {
  std::optional<admin::Response> refused = stream.refusal();
  if (stream.bad_head) refused = std::move(stream.response);
  if (refused) stream.response = std::move(*refused);
  if (!stream.complete) {  // the request exceeds a limit, so the rest of it is not needed
    respond(stream);
    session_.leave(*std::exchange(stream.stream, nullptr));
    return drop(stream);
  }
  if (refused) return respond(stream);
  const admin::AdminRequest asked = stream.request();
  if (admin::may_block(asked)) return queue_work(stream, AdminH2Stream::Work::respond, false);
  if (admin::needs_loop(asked)) return queue_work(stream, AdminH2Stream::Work::command, false);
  stream.response = handle(asked);
  respond(stream);
}

void AdminH2Connection::queue_work(AdminH2Stream& stream, AdminH2Stream::Work work, bool first) {
  stream.work = work;
  stream.ListHook<AdminH2StreamTag>::unlink();
  first ? ready_.push_front(stream) : ready_.push_back(stream);
}

// Continues responses that have begun before it begins others.
exec::TaskPtr AdminH2Connection::next_task() {
  for (AdminH2Stream& one : ready_) {
    const bool command = one.work == AdminH2Stream::Work::command;
    const bool starts = command || one.work == AdminH2Stream::Work::respond;
    if (starts ? in_progress_ >= kMaxInProgress : retry_at_ != kNever) {
      if (starts) return nullptr;  // those behind it also wait
    } else if (command) {
      send_to_loop(one);
    } else if (begin(one)) {
      return exec::lend(one.task);
    }
  }
  return nullptr;
}

// Returns false if the listener's connections have too many responses in progress.
bool AdminH2Connection::count(AdminH2Stream& stream) {
  if (stream.counted) return true;
  if (!owner_.begin_response()) {
    refuse(stream, "too many responses are being produced");
    return false;
  }
  stream.counted = true;
  ++in_progress_;
  return true;
}

void AdminH2Connection::uncount(AdminH2Stream& stream) {
  if (!std::exchange(stream.counted, false)) return;
  --in_progress_;
  owner_.end_response();
}

void AdminH2Connection::send_to_loop(AdminH2Stream& stream) {
  if (!count(stream)) return;
  send_away(stream);
  loop_.post(stream.to_loop);
}

// Notes that another thread has the stream, until its message returns.
void AdminH2Connection::send_away(AdminH2Stream& stream) {
  stream.ListHook<AdminH2StreamTag>::unlink();
  stream.away = true;
  busy_.fetch_add(1, std::memory_order_relaxed);
  enter();
}

// Returns false if too many tasks or responses exist.
bool AdminH2Connection::begin(AdminH2Stream& stream) {
  if (!count(stream)) return false;
  const bool starts = stream.work == AdminH2Stream::Work::respond;
  const bool may_run_here = starts && !admin::takes_long(stream.request());
  stream.task.kind = may_run_here ? exec::Invocation::either : exec::Invocation::blocking;
  if (!parts_.tasks.admit(stream.task)) {
    if (starts) {
      refuse(stream, "too many blocking tasks");
    } else {
      retry_at_ = now_ + kRetryStep;
    }
    return false;
  }
  send_away(stream);
  return true;
}

void AdminH2Connection::refuse(AdminH2Stream& stream, const char* why) {
  stream.response = admin::busy_response(why, "1");
  stream.body.reset();
  respond(stream);
}

// Called by the thread that ran the task, or closed it.
void AdminH2Connection::return_from_task(AdminH2Stream& stream) {
  static_cast<void>(inbox_.push(stream.to_connection));
  strategy_.announce();
  leave();
}

// Called when the stream is back from a task or from the loop.
void AdminH2Connection::on_returned(AdminH2Stream& stream) {
  using Made = AdminH2Stream::Made;
  using Work = AdminH2Stream::Work;
  busy_.fetch_sub(1, std::memory_order_relaxed);
  stream.away = false;
  if (!works() || stream.stream == nullptr) return drop(stream);
  if (stream.made == Made::failed) {
    session_.reset(*std::exchange(stream.stream, nullptr), http::H2Error::internal_error);
    return drop(stream);
  }
  if (stream.made == Made::refused) {
    if (stream.work == Work::respond) return refuse(stream, "too many blocking tasks");
    if (stream.work == Work::compress) return respond(stream);  // uncompressed
    retry_at_ = now_ + kRetryStep;
    return queue_work(stream, Work::step, true);
  }
  if (std::exchange(stream.to_compress, false)) return queue_work(stream, Work::compress, true);
  stream.work == Work::step ? send_step(stream) : respond(stream);
}

void AdminH2Connection::send_head(AdminH2Stream& stream, const admin::Response& response, bool end) {
  http::H2Fields fields;
  const std::string status = std::to_string(response.status);
  fields.add(":status", status);
  fields.add("date", http::date_text(std::chrono::system_clock::now()));
  if (!response.content_type.empty()) fields.add("content-type", response.content_type);
  for (const auto& [name, value] : response.headers) fields.add(name, value);
  const std::string length = std::to_string(response.body.size());
  if (!stream.body && !response.stream) fields.add("content-length", length);
  session_.respond(*stream.stream, fields, end);
}

void AdminH2Connection::respond(AdminH2Stream& stream) {
  const admin::Response response = std::exchange(stream.response, {});
  const bool body_wanted = stream.request().method != "HEAD";
  if (!body_wanted) stream.body.reset(), stream.listening = false;
  const bool whole = !stream.body && !stream.listening;
  const bool end = whole && (!body_wanted || response.body.empty());
  send_head(stream, response, end);
  stream.responded = true;
  stream.deadline = now_ + kAdminTimeout;
  if (stream.listening) {
    busy_.fetch_add(1, std::memory_order_relaxed);
    uncount(stream);  // events have their own limit
  }
  move(stream, sending_);
  if (stream.body) return send_step(stream);
  if (end || !whole) return;
  session_.body(*stream.stream, response.body);
  session_.end(*stream.stream);
}

void AdminH2Connection::send_step(AdminH2Stream& stream) {
  move(stream, sending_);
  session_.body(*stream.stream, stream.body->take());
  if (!stream.body->complete()) return on_sent(stream);  // the step may have added nothing
  stream.body.reset();
  session_.end(*stream.stream);
}

// Called when the client has read the last step: produces the next one.
void AdminH2Connection::on_sent(AdminH2Stream& stream) {
  if (stream.away || !stream.body || stream.stream->backlog() != 0) return;
  queue_work(stream, AdminH2Stream::Work::step, true);
}

// Sends the event to every listener that has read the last one.
void AdminH2Connection::on_event() {
  for (AdminH2Stream& one : sending_) {
    if (!one.listening) continue;
    if (event_mail_.resync) one.up_to_date = false;
    if (one.stream->backlog() != 0 || !write_queue_.empty()) {
      one.up_to_date = false;
      continue;
    }
    if (one.up_to_date && event_mail_.event.changes == nullptr) continue;
    session_.body(*one.stream, one.up_to_date ? *event_mail_.event.changes : *event_mail_.event.whole);
    one.up_to_date = true;
    one.deadline = now_ + kAdminTimeout;  // a client that reads nothing until the timeout loses its stream
  }
  event_mail_.event = {};
  // release pairs with the acquire in send_event().
  event_posted_.store(false, std::memory_order_release);
}

void AdminH2Connection::move(AdminH2Stream& stream, Streams& to) {
  stream.ListHook<AdminH2StreamTag>::unlink();
  to.push_back(stream);
}

// The stream may be in use up the stack, so it is freed later.
void AdminH2Connection::drop(AdminH2Stream& stream) {
  if (http::H2Stream* const open = std::exchange(stream.stream, nullptr)) open->set_user(nullptr);
  uncount(stream);
  idle_since_ = now_;
  if (stream.listening) stop_listening(stream);
  held_ -= stream.held();
  move(stream, dropped_);
}

void AdminH2Connection::stop_listening(AdminH2Stream& stream) {
  stream.listening = false;
  if (stream.responded) busy_.fetch_sub(1, std::memory_order_relaxed);
  unlistened_.fetch_add(1, std::memory_order_relaxed);
  request_loop(LoopRequest::unlisten);
}

void AdminH2Connection::free_dropped() {
  while (!dropped_.empty()) const std::unique_ptr<AdminH2Stream> dies(&dropped_.pop_front());
}

}  // namespace carpool::proxy
