// The sending half of H2Impl: the next frame of a stream's queue, and what follows once a frame was sent.
#include <algorithm>
#include <utility>

#include "proxy/http/h2/session_impl.h"

namespace carpool::proxy::http {

ssize_t H2Impl::next_frame(H2Stream& stream, nghttp2_session* of, StreamId id, std::size_t most, std::uint32_t& flags) {
  const std::size_t size = std::min(most, stream.backlog());
  if (size == 0 && !stream.ended_) {
    stream.idle_ = true;
    return NGHTTP2_ERR_DEFERRED;
  }
  flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (!stream.ended_ || size < stream.backlog()) return static_cast<ssize_t>(size);
  flags |= NGHTTP2_DATA_FLAG_EOF;
  if (stream.trailers_.empty()) return static_cast<ssize_t>(size);
  flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
  static_cast<void>(take_waiting(stream));
  const std::vector<nghttp2_nv>& fields = list(stream.trailers_);
  // A failure resets the stream.
  if (nghttp2_submit_trailer(of, id, fields.data(), fields.size()) != 0) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  return static_cast<ssize_t>(size);
}

int H2Impl::write_frame(H2Stream& stream, std::string_view head, std::size_t size) {
  // The frame header was prepared before `out` had room for it, and its payload has been dropped since. It must not be
  // sent, or the following bytes would be parsed as its payload.
  if (stream.reset_) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  if (out->size() >= most_out) return NGHTTP2_ERR_WOULDBLOCK;
  out->append(head).append(stream.queue_, stream.sent_, size);
  stream.sent_ += size;
  stream.moved_ += size;
  messages_framed += size;
  backlog -= size;
  if (stream.backlog() == 0) {
    stream.sent_ = 0;
    stream.queue_.clear();
    if (stream.queue_.capacity() > kLargeQueue) std::string().swap(stream.queue_);
  }
  if (!stream.ListHook<H2SentTag>::linked()) moved.push_back(stream);
  return 0;
}

// Appends a frame of the library other than DATA. Its GOAWAY, also the one with which it ends a session by itself,
// would include streams that a GOAWAY excludes which was queued and not sent yet (RFC 9113 §6.8).
void H2Impl::append_frame(std::string_view bytes) {
  const std::size_t last = out->size() + FrameHead::kSize;
  const FrameHead head = FrameHead::read(bytes);
  out->append(bytes);
  if (head.type == FrameHead::headers_frame) note_begun(static_cast<StreamId>(head.stream));
  if (head.type != FrameHead::goaway) return;
  last_taken = std::min(last_taken, static_cast<StreamId>(read_stream_id(bytes.substr(FrameHead::kSize))));
  for (std::size_t i = 0; i < sizeof last_taken; ++i) (*out)[last + i] = static_cast<char>(last_taken >> (24 - 8 * i));
}

// The library reports a head only when it continues behind the last of its frames. A peer may process the request from
// its first frame on, because the rest follows whatever happens meanwhile.
void H2Impl::note_begun(StreamId id) {
  H2Stream* const stream = role == H2Role::client ? find(id) : nullptr;
  if (stream != nullptr) stream->head_begun_ = true;
}

void H2Impl::on_sent(const nghttp2_frame& frame) {
  if (frame.hd.type == NGHTTP2_RST_STREAM)
    return on_reset_sent(frame.hd.stream_id, h2_error(frame.rst_stream.error_code));
  if (frame.hd.type == NGHTTP2_GOAWAY) return on_goaway_sent(frame.goaway);
  if (frame.hd.type != NGHTTP2_DATA && frame.hd.type != NGHTTP2_HEADERS) return;
  const bool head = frame.hd.type == NGHTTP2_HEADERS;
  if (head) messages_framed += frame.hd.length;
  if (!head) guard.note_body_sent(frame.hd.length);
  H2Stream* const stream = find(frame.hd.stream_id);
  if (stream == nullptr) return;
  if (head) {
    stream->head_sent_ = true;
    if (stream->heads_ != 0) --stream->heads_;
  }
  cut_if_drained(*stream);
  if (head && stream->widen_to_ != 0) widen(*stream);
  if ((frame.hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) {
    if (head) submit_late_trailers(*stream);
    return;
  }
  stream->end_sent_ = true;
  if (stream->detached_) stop_upload(*stream);
}

// Resets the stream if the response is complete and the request is not: its rest is not needed (RFC 9113 §8.1).
void H2Impl::stop_upload(H2Stream& stream) {
  if (stream.end_sent_ && !stream.peer_ended_) submit_reset(stream, H2Error::no_error);
}

// Counts only resets that the peer's errors caused, not those that this side chose. Of a reset by the library only the
// error is known; the library closes the stream next.
void H2Impl::on_reset_sent(StreamId id, H2Error error) {
  H2Stream* const stream = role == H2Role::server ? find(id) : nullptr;
  switch (error) {
    case H2Error::protocol_error:
    case H2Error::flow_control_error:
    case H2Error::stream_closed:
    case H2Error::frame_size_error:
      if (stream != nullptr && !stream->reset_) stream->violation_ = h2_error_name(error).data();
      if (role == H2Role::server && !guard.reset_made(now)) stop(H2Error::enhance_your_calm, H2Abuse::resets);
      break;
    case H2Error::refused_stream:
      if (role == H2Role::server) sink.on_stream_refused();
      if (role == H2Role::server && !guard.refused(now)) stop(H2Error::enhance_your_calm, H2Abuse::resets);
      break;
    default:
      break;
  }
}

void H2Impl::on_goaway_sent(const nghttp2_goaway& frame) {
  if (frame.error_code == NGHTTP2_NO_ERROR || stopped_by_owner) return;
  connection_error.assign(h2_error_name(h2_error(frame.error_code)));
  const std::string_view why(reinterpret_cast<const char*>(frame.opaque_data), frame.opaque_data_len);
  if (!why.empty()) connection_error.append(" (").append(why).append(")");
}

// Notes a request that cannot be sent, because the peer sent GOAWAY or the request was cancelled before. The library
// closes the stream next.
void H2Impl::on_never_sent(StreamId id) {
  if (H2Stream* stream = find(id)) stream->never_sent_ = true;
}

// Resets a stream whose response head, 1xx or trailers cannot be sent, because they exceed kMaxBlock: without them
// the peer would wait for the end of the stream.
void H2Impl::on_head_dropped(StreamId id) {
  if (H2Stream* stream = find(id)) submit_reset(*stream, H2Error::internal_error);
}

}  // namespace carpool::proxy::http
