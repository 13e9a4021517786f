// The heads that H2Impl sends. They are not flow-controlled, so those that the peer does not read fill the library's
// memory. Response heads wait here for room in it, as many bytes as its limit; one beyond that costs its stream.
#include <utility>

#include "proxy/http/h2/session_impl.h"

namespace carpool::proxy::http {

namespace {
// Returns how much of the library's memory these trailers need.
std::size_t bytes_of(const Fields& trailers) {
  return trailers.bytes() + 64 * trailers.size();
}
}  // namespace

// Leaves an eighth for packing heads and for control frames: if that fails, the session fails.
bool H2Impl::has_memory_for(std::size_t head) const {
  return memory.in_use() + head <= options.memory - options.memory / 8;
}

void H2Impl::inform(H2Stream& stream, const H2Fields& head) {
  if (!has_memory_for(head.bytes())) return;
  ++stream.heads_;
  const std::vector<nghttp2_nv>& all = list(head);
  const int submitted =
      nghttp2_submit_headers(session, NGHTTP2_FLAG_NONE, stream.id_, nullptr, all.data(), all.size(), nullptr);
  if (submitted != 0) submit_reset(stream, H2Error::internal_error);
}

void H2Impl::respond(H2Stream& stream, const H2Fields& head) {
  ++stream.heads_;
  if (waiting.empty() && has_memory_for(head.bytes())) return submit_head(stream, head);
  if (waiting_bytes + head.bytes() > options.memory) return submit_reset(stream, H2Error::internal_error);
  stream.head_ = std::make_unique<H2Fields>();
  stream.head_->copy_from(head);
  waiting_bytes += head.bytes();
  waiting.push_back(stream);
}

// Without its head the peer would wait for the end of the stream.
void H2Impl::submit_head(H2Stream& stream, const H2Fields& head) {
  const bool bare = stream.ended_ && stream.backlog() == 0 && stream.trailers_.empty();
  const std::vector<nghttp2_nv>& all = list(head);
  const nghttp2_data_provider body = h2_body_of(stream);
  const int submitted = nghttp2_submit_response(session, stream.id_, all.data(), all.size(), bare ? nullptr : &body);
  if (submitted != 0) submit_reset(stream, H2Error::internal_error);
}

void H2Impl::submit_waiting() {
  while (!waiting.empty()) {
    H2Stream& stream = waiting.front();
    if (!has_memory_for(stream.head_ != nullptr ? stream.head_->bytes() : bytes_of(stream.trailers_))) return;
    const std::unique_ptr<H2Fields> head = take_waiting(stream);
    head != nullptr ? submit_head(stream, *head) : submit_trailers(stream, stream.trailers_);
  }
}

// Called when the library has nothing to send: no room will come. Returns false if no head waits.
bool H2Impl::refuse_waiting() {
  if (waiting.empty()) return false;
  submit_reset(waiting.front(), H2Error::internal_error);
  return true;
}

// Returns true if only `last`, the trailers, are left to send. Then they need no window (RFC 9113 §6.9). Otherwise
// next_frame() sends them after the last DATA.
bool H2Impl::only_trailers_left(const H2Stream& stream, const Fields& last) const {
  const bool head = role == H2Role::client ? stream.head_sent_ : stream.responded_ && stream.head_ == nullptr;
  return head && stream.backlog() == 0 && !last.empty();
}

bool H2Impl::may_send(const H2Stream& stream, const Fields& last) const {
  return only_trailers_left(stream, last) && has_memory_for(bytes_of(last));
}

void H2Impl::submit_trailers(H2Stream& stream, const Fields& last) {
  stream.ended_ = true;
  const std::vector<nghttp2_nv>& all = list(last);
  if (nghttp2_submit_trailer(session, stream.id_, all.data(), all.size()) != 0) {
    submit_reset(stream, H2Error::internal_error);
  }
}

// Called when a head was sent. Trailers that waited for it precede the heads that wait.
void H2Impl::submit_late_trailers(H2Stream& stream) {
  const bool waits = stream.ListHook<H2WaitingTag>::linked();
  if (!waits && only_trailers_left(stream, stream.trailers_)) waiting.push_front(stream);
}

std::unique_ptr<H2Fields> H2Impl::take_waiting(H2Stream& stream) {
  stream.ListHook<H2WaitingTag>::unlink();
  if (stream.head_ == nullptr) return nullptr;
  waiting_bytes -= stream.head_->bytes();
  return std::move(stream.head_);
}

}  // namespace carpool::proxy::http
