// The remote half of a CrossLoopStream: applies request parts to the session and reports response parts.
#include <utility>

#include "proxy/net/io_limits.h"
#include "proxy/net/write_queue.h"
#include "proxy/upstream/h2/connection.h"
#include "proxy/upstream/h2/cross_loop_stream.h"

namespace carpool::proxy {

namespace {
// Limit of the data gathered while a report is in flight, for a client that may buffer more. Data beyond it stays in
// the stream's window, so that a slow reader stops the origin instead of filling memory on two loops.
constexpr std::size_t kGathered = std::size_t{16} * 1024;
}  // namespace

void CrossLoopStream::apply(RequestPart& request_part) {
  request_part_held_ = true;
  if (request_part.has_head && !remote_finished_) {
    stream_begun_ = true;
    may_buffer_more_ = request_part.may_buffer_more;
    upstream_stream_.begin(*connection_);
    upstream_stream_.send_fields(request_part.head, request_part.head_is_whole, request_part.head_request);
  }
  if (stream_begun_) {
    upstream_stream_.send_body(request_part.body);
    if (request_part.end) upstream_stream_.send_end(request_part.trailers);
    upstream_stream_.flush();
    if (upstream_stream_.backlog() >= kHighWatermark) return;  // on_writable() returns the message
  }
  give_request_part_back();
}

void CrossLoopStream::on_cancel() {
  if (!remote_finished_) {
    pool::Lease none;
    if (stream_begun_) upstream_stream_.abandon(pool::CloseCause::error, none);
    next_response_part_.clear();
    done();
  }
  cancel_.outward = false;
  local_.loop().post(cancel_);
}

void CrossLoopStream::give_request_part_back() {
  if (!std::exchange(request_part_held_, false)) return;
  request_part_.content.clear();
  request_part_.outward = false;
  local_.loop().post(request_part_);
}

void CrossLoopStream::send_response_part() {
  if (!response_part_.home || next_response_part_.empty()) return;
  std::swap(response_part_.content, next_response_part_);
  next_response_part_.clear();
  response_part_.home = false;
  response_part_.outward = true;
  local_.loop().post(response_part_);
}

void CrossLoopStream::done() {
  stream_begun_ = false;
  remote_finished_ = true;
  next_response_part_.done = true;
  give_request_part_back();
  send_response_part();
}

bool CrossLoopStream::wants_response() const {
  return response_part_.home || (may_buffer_more_ && next_response_part_.body.size() < kGathered);
}

AttemptState CrossLoopStream::on_response_head() {
  next_response_part_.heads.push_back(std::exchange(head_, {}));
  return AttemptState::alive;
}

AttemptState CrossLoopStream::on_read_complete() {
  send_response_part();
  return AttemptState::alive;
}

AttemptState CrossLoopStream::on_response_end() {
  pool::Lease none;
  upstream_stream_.finish(none);
  next_response_part_.end = true;
  done();
  return AttemptState::over;
}

AttemptState CrossLoopStream::on_failure(StreamFailure failure) {
  pool::Lease none;
  upstream_stream_.abandon(pool::CloseCause::error, none);
  next_response_part_.failure = std::move(failure);
  done();
  return AttemptState::over;
}

AttemptState CrossLoopStream::on_writable() {
  if (upstream_stream_.backlog() < kHighWatermark) give_request_part_back();
  return AttemptState::alive;
}

}  // namespace carpool::proxy
