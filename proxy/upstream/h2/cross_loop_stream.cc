#include "proxy/upstream/h2/cross_loop_stream.h"

#include <utility>

#include "proxy/net/write_queue.h"
#include "proxy/upstream/h2/connection.h"

namespace carpool::proxy {

void CrossLoopStream::RequestPart::clear() {
  head.clear();
  body.clear();
  trailers.clear();
  has_head = head_is_whole = head_request = may_buffer_more = end = false;
}

void CrossLoopStream::RequestPart::shrink() {
  head.shrink();
  http::shrink_text(body);
  trailers.shrink();
}

void CrossLoopStream::ResponsePart::clear() {
  heads.clear();
  body.clear();
  trailers.clear();
  end = done = may_buffer_more = false;
  failure.reset();
}

void CrossLoopStream::ResponsePart::shrink() {
  constexpr std::size_t kMaxKeptHeads = 4;
  if (heads.capacity() > kMaxKeptHeads) heads.shrink_to_fit();
  http::shrink_text(body);
  trailers.shrink();
}

CrossLoopStream::CrossLoopStream(H2LoopContext& local, H2LoopContext& remote)
    : local_(local), remote_(remote), upstream_stream_(remote, *this, head_) {}

// ---- local: calls of the exchange ----

void CrossLoopStream::begin(H2Connection& connection, UpstreamStreamHandler& user, http::ResponseHead& response) {
  CARPOOL_ASSERT(user_ == nullptr && request_part_.home && response_part_.home && cancel_.home && !stream_begun_);
  connection_ = &connection;
  user_ = &user;
  response_ = &response;
  // No message is in flight, so this side may write the state of both halves.
  remote_done_ = response_part_held_ = request_part_held_ = remote_finished_ = false;
  in_flight_ = 0;
}

void CrossLoopStream::send_head(const http::RequestHead& head, const http::ForwardRules& rules) {
  http::h2_request(next_request_part_.head, head, rules, {connection_->scheme(), {}});
  next_request_part_.head.own();
  next_request_part_.has_head = true;
  next_request_part_.head_is_whole = head.is_whole();
  next_request_part_.head_request = head.has_method("HEAD");
  next_request_part_.may_buffer_more = user_->may_buffer_more();
}

void CrossLoopStream::send_end(const http::Fields& trailers) {
  next_request_part_.trailers = trailers;
  next_request_part_.end = true;
}

bool CrossLoopStream::flush() {
  if (!request_part_.home || next_request_part_.empty()) return !next_request_part_.empty();
  std::swap(request_part_.content, next_request_part_);
  next_request_part_.clear();
  in_flight_ = request_part_.content.body.size();
  request_part_.home = false;
  request_part_.outward = true;
  remote_.loop().post(request_part_);
  return true;
}

void CrossLoopStream::arrived(Message<RequestPart>& message) {
  exec::assume_on_loop();
  if (message.outward) return apply(message.content);
  message.home = true;
  in_flight_ = 0;
  if (remote_done_) return recycle_if_done();
  flush();
  if (user_ != nullptr) static_cast<void>(user_->on_writable());
}

// ---- local: reports of the remote half ----

void CrossLoopStream::arrived(Message<ResponsePart>& message) {
  exec::assume_on_loop();
  if (message.outward) return read_response_part();
  message.home = true;
  may_buffer_more_ = message.content.may_buffer_more;
  if (stream_begun_)
    static_cast<void>(upstream_stream_.resume_reading());  // reopens the withheld window before the next part is sent
  send_response_part();
}

AttemptState CrossLoopStream::deliver(ResponsePart& response_part) {
  for (http::ResponseHead& head : response_part.heads) {
    std::swap(*response_, head);
    if (user_->on_response_head() == AttemptState::over) return AttemptState::over;
  }
  if (!response_part.body.empty()) user_->on_body(response_part.body);
  const http::Fields& trailers = response_part.trailers;
  for (std::size_t i = 0; i < trailers.size(); ++i) {
    user_->on_trailer(trailers[i].name, trailers[i].value, trailers.sensitive(i));
  }
  if (response_part.failure) return user_->on_failure(std::move(*response_part.failure));
  return response_part.end ? user_->on_response_end() : user_->on_read_complete();
}

void CrossLoopStream::read_response_part() {
  ResponsePart& response_part = response_part_.content;
  remote_done_ = response_part.done;
  response_part_held_ = true;
  // The stream is not reused before recycle_if_done(), which this function calls last, so it still belongs to the ended
  // attempt.
  const bool over = user_ == nullptr || deliver(response_part) == AttemptState::over;
  if (!response_part_held_) return;
  if (remote_done_) return recycle_if_done();
  if (over || user_->wants_response()) return give_response_part_back();
  response_part.body.clear();  // already delivered; the message may be kept for long
  http::shrink_text(response_part.body);
}

void CrossLoopStream::give_response_part_back() {
  if (!std::exchange(response_part_held_, false)) return;
  response_part_.content.clear();
  response_part_.content.may_buffer_more = user_ != nullptr && user_->may_buffer_more();
  response_part_.outward = false;
  remote_.loop().post(response_part_);
}

AttemptState CrossLoopStream::resume_reading() {
  if (user_->wants_response() && !remote_done_) give_response_part_back();
  return AttemptState::alive;
}

// ---- local: the end ----

std::optional<pool::CloseCause> CrossLoopStream::finish(pool::Lease& lease) {
  return abandon(pool::CloseCause::error, lease);
}

std::optional<pool::CloseCause> CrossLoopStream::abandon(pool::CloseCause, pool::Lease& lease) {
  user_ = nullptr;
  response_ = nullptr;
  if (remote_done_) return std::nullopt;  // read_response_part() recycles the stream later
  lease_ = std::move(lease);
  next_request_part_.clear();
  cancel_.home = false;
  cancel_.outward = true;
  remote_.loop().post(cancel_);
  give_response_part_back();
  return std::nullopt;
}

void CrossLoopStream::arrived(Message<Cancel>& message) {
  exec::assume_on_loop();
  if (message.outward) return on_cancel();
  message.home = true;
  recycle_if_done();
}

// Recycles the stream if all messages are back and the remote half has finished.
void CrossLoopStream::recycle_if_done() {
  if (!remote_done_ || !request_part_.home || !cancel_.home || user_ != nullptr) return;
  response_part_held_ = false;
  response_part_.content.clear();
  response_part_.home = true;
  next_request_part_.clear();
  next_request_part_.shrink();
  request_part_.content.shrink();
  response_part_.content.shrink();
  next_response_part_.shrink();
  if (lease_) lease_.release(local_.loop().now());
  local_.recycle(*this, remote_.loop().id());
}

}  // namespace carpool::proxy
