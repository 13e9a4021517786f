// The receiving half of H2Impl: turns the library's events into messages and applies our own rules.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "proxy/http/h2/session_impl.h"

namespace carpool::proxy::http {

namespace {
bool ends(const nghttp2_frame& frame) {
  return (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
}
}  // namespace

void H2Impl::stop(H2Error error, H2Abuse why) {
  if (terminating) return;
  terminating = true;
  if (abuse == H2Abuse::none) abuse = why;
  require(nghttp2_session_terminate_session(session, static_cast<std::uint32_t>(error)));
}

void H2Impl::note(H2Guard::Frame frame) {
  if (!guard.frame(frame, now)) stop(H2Error::enhance_your_calm, H2Abuse::control);
}

// Judges HEADERS on a stream that the library has released.
void H2Impl::check_late_frame(StreamId id) {
  if (role != H2Role::server) return;
  const H2Error error = past.check_headers(id);
  if (error != H2Error::no_error && find(id) == nullptr) stop(error, H2Abuse::none);
}

void H2Impl::watch_frames(std::string_view bytes) {
  if (role != H2Role::server) return;
  const std::size_t preface = std::min(preface_left, bytes.size());
  preface_left -= preface;
  frames.pass(bytes.substr(preface), [this](std::uint32_t type, std::uint32_t stream) {
    const auto id = static_cast<StreamId>(stream);
    if (type == NGHTTP2_PRIORITY && id == 0) stop(H2Error::protocol_error, H2Abuse::none);
    if (type == NGHTTP2_RST_STREAM) past.note_closed_by_peer(id);
    if (type == NGHTTP2_DATA && past.closed_by_peer(id)) stop(H2Error::stream_closed, H2Abuse::none);
  });
}

ssize_t H2Impl::feed(std::string_view bytes) {
  ssize_t consumed = 0;
  const auto pass = [&](std::string_view run) {
    if (consumed < 0) return;
    note_queue();
    consumed = nghttp2_session_mem_recv(session, reinterpret_cast<const std::uint8_t*>(run.data()), run.size());
  };
  const auto filter = [&](std::string_view run) { goaways.filter(run, pass); };
  role == H2Role::client ? filter(bytes) : pass_whole_heads(bytes, filter);
  return consumed;
}

// Passes each frame header at once, however it arrives: the library counts one more CONTINUATION frame for every part.
template <class Pass>
void H2Impl::pass_whole_heads(std::string_view bytes, const Pass& pass) {
  const std::size_t begun = frames.begun();
  if (!split_head.empty()) {
    const std::string_view more = bytes.substr(0, FrameHead::kSize - split_head.size());
    split_head.append(more);
    bytes.remove_prefix(more.size());
    if (split_head.size() < FrameHead::kSize) return;
    pass(split_head);
    split_head.clear();
  }
  split_head.assign(bytes.substr(bytes.size() - begun));
  bytes.remove_suffix(begun);
  if (!bytes.empty()) pass(bytes);
}

void H2Impl::begin_block(const nghttp2_frame& frame) {
  const bool begins = role == H2Role::server && frame.headers.cat == NGHTTP2_HCAT_REQUEST;
  H2Stream* stream = begins ? nullptr : find(frame.hd.stream_id);
  if (begins) {
    stream = &open(frame.hd.stream_id);
    stream->opened_ = now;
    stream->window_ = options.stream_window;
    require(nghttp2_session_set_stream_user_data(session, frame.hd.stream_id, stream));
    // Streams are served round robin, whatever priorities the client sets.
    const nghttp2_extpri in_turn{NGHTTP2_EXTPRI_DEFAULT_URGENCY, 1};
    require(nghttp2_session_change_extpri_stream_priority(session, frame.hd.stream_id, &in_turn, 1));
    guard.note_request();
    past.note_opened(stream->id_);
    recent = stream;
    if (stream->id_ > last_taken) leave_out(*stream);
    reader.begin_request(request);
  } else if (stream != nullptr && role == H2Role::client && stream->incoming_.awaits_head()) {
    reader.begin_response(response);
  } else {
    reader.begin_trailers(trailers);
  }
  block = stream;
  block_began = now;
}

// Ignores a stream that a queued GOAWAY excludes, because its client sends the request again elsewhere. The library,
// which ignores streams only from the moment at which it sends the frame, then closes this one.
void H2Impl::leave_out(H2Stream& stream) {
  stream.reset_ = true;
  past.note_reset_by_us(stream.id_);
}

void H2Impl::end_block(const nghttp2_frame& frame) {
  H2Stream* stream = std::exchange(block, nullptr);
  if (stream == nullptr || stream->id_ != frame.hd.stream_id || stream->reset_ || terminating) return;
  const bool end = ends(frame);
  stream->peer_ended_ = stream->peer_ended_ || end;
  if (!stream->incoming_.awaits_head()) return on_trailers(*stream, end);
  role == H2Role::server ? on_request_head(*stream, end) : on_response_head(*stream, end);
}

// Frees the memory of large trailers, and of a large head that no owner swapped out, because a session at rest must not
// keep it.
void H2Impl::forget_block() {
  trailers.clear();
  trailers.shrink();
  request.clear();
  request.shrink();
  response.clear();
  response.shrink();
}

void H2Impl::malformed(H2Stream& stream, const char* why, FaultKind kind) {
  stream.violation_ = why;
  stream.violation_kind_ = kind;
  const H2Error error =
      stream.incoming_.phase() == MessagePhase::closed ? H2Error::stream_closed : H2Error::protocol_error;
  H2StreamUser* user = std::exchange(stream.user_, nullptr);
  submit_reset(stream, error);
  if (user != nullptr) user->on_closed(error);
}

void H2Impl::out_of_order(H2Stream& stream) {
  malformed(stream, stream.incoming_.error());
}

namespace {
std::optional<std::uint64_t> announced(Framing framing, std::uint64_t length) {
  return framing == Framing::length ? std::optional(length) : std::nullopt;
}
}  // namespace

void H2Impl::on_request_head(H2Stream& stream, bool end) {
  const H2HeadReader::Outcome outcome = reader.end_request(end, options.extended_connect);
  if (outcome == H2HeadReader::Outcome::malformed) {
    malformed(stream, reader.error());
    return sink.on_malformed_head(stream.violation_);
  }
  const bool fits = outcome == H2HeadReader::Outcome::good;
  if (!stream.incoming_.head(false, fits ? announced(request.framing, request.length) : std::nullopt, end)) {
    out_of_order(stream);
    return sink.on_malformed_head(stream.violation_);
  }
  stream.head_request_ = request.has_method("HEAD");
  stream.grpc_request_ = !fits && reader.is_grpc();
  if (!fits) return sink.on_refused_head(stream, reader.too_large());
  stream.connect_ = request.has_method("CONNECT");
  if (H2StreamUser* user = sink.on_request(stream, request)) stream.user_ = user;
  if (end) on_end(stream);
}

void H2Impl::on_response_head(H2Stream& stream, bool end) {
  const H2HeadReader::Outcome outcome = reader.end_response(end, stream.head_request_);
  if (outcome == H2HeadReader::Outcome::too_large) {
    return malformed(stream, "the response head exceeds the limit", FaultKind::response_head_too_large);
  }
  if (outcome == H2HeadReader::Outcome::malformed) return malformed(stream, reader.error());
  if (response.status < 200) {
    if (!stream.incoming_.informational(end)) return out_of_order(stream);
    const char* const error = stream.informational_.add(reader.bytes(), options.head);
    if (error != nullptr) return malformed(stream, error, FaultKind::informational_limit);
  } else {
    const bool bare = stream.head_request_ || response.status == 204 || response.status == 304;
    if (!stream.incoming_.head(bare, announced(response.framing, response.length), end)) return out_of_order(stream);
  }
  if (stream.user_ != nullptr) stream.user_->on_head(response);
  if (end) on_end(stream);
}

void H2Impl::on_trailers(H2Stream& stream, bool end) {
  if (!stream.incoming_.fields(end)) return out_of_order(stream);
  if (stream.connect_) return malformed(stream, "fields in a tunnel");  // RFC 9113 §8.5: DATA only
  if (reader.end_trailers(end) != H2HeadReader::Outcome::good) {
    return malformed(stream, reader.error() != nullptr ? reader.error() : "the trailers exceed the limit");
  }
  if (stream.user_ != nullptr) stream.user_->on_trailers(trailers);
  on_end(stream);
}

void H2Impl::on_data(H2Stream& stream, std::string_view bytes) {
  stream.unconsumed_ += bytes.size();
  if (options.shared_window_is_free) require(nghttp2_session_consume_connection(session, bytes.size()));
  if (stream.reset_) return give_window(stream, bytes.size());
  if (!stream.incoming_.data(bytes.size())) return out_of_order(stream);
  guard.note_body();
  if (stream.user_ == nullptr) return give_window(stream, bytes.size());
  stream.user_->on_body(bytes);
}

// Padding is never delivered, and the library, which would return its window, counts differently from return_window().
void H2Impl::on_padding(StreamId id, std::size_t bytes) {
  H2Stream* stream = find(id);
  if (stream != nullptr && options.shared_window_is_free) return_window(*stream, bytes);
}

// Called when a DATA frame is complete; on_data() has already delivered its content.
void H2Impl::end_data(H2Stream& stream, bool empty, bool end) {
  if (stream.reset_) return;
  if (empty && !end && !stream.incoming_.data(0)) return out_of_order(stream);
  if (!end) return;
  stream.peer_ended_ = true;
  if (!stream.incoming_.end()) return out_of_order(stream);
  on_end(stream);
}

// Called when the peer's message is complete.
void H2Impl::on_end(H2Stream& stream) {
  if (!stream.reset_ && stream.user_ != nullptr) stream.user_->on_end();
}

void H2Impl::on_field(std::string_view name, std::string_view value, bool sensitive) {
  reader.field(name, value, sensitive);
  if (reader.bytes() > kBlockGrowth * options.head.header_bytes) {
    stop(H2Error::enhance_your_calm, H2Abuse::header_list);
  }
}

void H2Impl::on_reset_frame(StreamId id) {
  if (role != H2Role::server) return;
  const H2Stream* const stream = find(id);
  const Duration open = stream == nullptr ? Duration::zero() : now - stream->opened_;
  if (!guard.reset_by_peer(open, now)) stop(H2Error::enhance_your_calm, H2Abuse::resets);
}

H2PeerSettings H2Impl::peer() const {
  const auto value = [this](nghttp2_settings_id id) { return nghttp2_session_get_remote_settings(session, id); };
  return {value(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS), value(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE),
          value(NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) != 0, value(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE)};
}

void H2Impl::note_queue() {
  queued = nghttp2_session_get_outbound_queue_size(session);
}

// The library resets each stream whose window a new initial window size makes too large; the whole session is in error
// (RFC 9113 §6.9.2). Its other frame is the acknowledgement.
void H2Impl::on_peer_settings() {
  if (nghttp2_session_get_outbound_queue_size(session) > queued + 1) {
    stop(H2Error::flow_control_error, H2Abuse::none);
  }
  sink.on_settings(peer());
}

void H2Impl::on_ping_ack(const std::uint8_t* payload) {
  std::uint64_t value = 0;
  std::memcpy(&value, payload, sizeof value);
  sink.on_ping_ack(value);
}

}  // namespace carpool::proxy::http
