// Streams of a session: creation, lookup, sending, closing, and recycling of their records.
#include <memory>
#include <utility>

#include "base/assert.h"
#include "proxy/http/h2/session_impl.h"

namespace carpool::proxy::http {

namespace {
constexpr std::size_t kSpares = 64;       // as many as a busy session has at once; freed when it is idle
constexpr std::size_t kKeptQueue = 4096;  // the capacity that a recycled record keeps

// The library copies both texts; its API just lacks const.
nghttp2_nv name_value(std::string_view name, std::string_view value, bool sensitive) {
  return {reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())),
          reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(),
          static_cast<std::uint8_t>(sensitive ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE)};
}
}  // namespace

H2Impl::~H2Impl() {
  nghttp2_session_del(session);
  while (!streams.empty()) {
    const std::unique_ptr<H2Stream> dies(&streams.pop_front());
  }
  while (!spare.empty()) {
    const std::unique_ptr<H2Stream> dies(&spare.pop_front());
  }
}

H2Stream& H2Impl::open(StreamId id) {
  H2Stream* stream = nullptr;
  if (spare.empty()) {
    stream = std::make_unique<H2Stream>().release();  // owned by the list
  } else {
    stream = &spare.pop_front();
    --spares;
  }
  stream->id_ = id;
  streams.push_back(*stream);
  ++stream_count;
  return *stream;
}

void H2Impl::free(H2Stream& stream) {
  drop_queue(stream);
  if (block == &stream) block = nullptr;
  if (recent == &stream) recent = nullptr;
  stream.ListHook<H2StreamTag>::unlink();
  stream.ListHook<H2SentTag>::unlink();
  --stream_count;
  if (spares >= kSpares) {
    const std::unique_ptr<H2Stream> dies(&stream);
    return;
  }
  CARPOOL_ASSERT(stream.queue_.empty() && stream.head_ == nullptr);  // nothing of this stream reaches the next one
  static_cast<H2StreamValues&>(stream) = {};
  if (stream.queue_.capacity() > kKeptQueue) std::string().swap(stream.queue_);
  stream.trailers_.clear();
  stream.trailers_.shrink();
  spare.push_front(stream);
  ++spares;
}

// Most events are of the stream of the event before.
H2Stream* H2Impl::find(StreamId id) {
  if (recent == nullptr || recent->id_ != id) {
    recent = static_cast<H2Stream*>(nghttp2_session_get_stream_user_data(session, id));
  }
  return recent;
}

// Called when the library releases the stream.
void H2Impl::close(H2Stream& stream, H2Error error) {
  stream.dead_ = true;
  if (stream.peer_ended_ && !stream.reset_) past.note_closed_by_peer(stream.id_);
  if (stream.never_sent_) error = H2Error::refused_stream;  // equivalent to refused: certainly not processed
  if (stream.unconsumed_ != 0 && !options.shared_window_is_free) {
    require(nghttp2_session_consume_connection(session, stream.unconsumed_));
  }
  stream.unconsumed_ = 0;
  H2StreamUser* user = stream.user_;
  stream.user_ = nullptr;
  if (error == H2Error::no_error && stream.peer_ended_ && stream.end_sent_) guard.note_completed();
  if (user != nullptr) user->on_closed(error);
  free(stream);
}

void H2Impl::resume(H2Stream& stream) {
  if (!stream.idle_ || stream.dead_) return;
  stream.idle_ = false;
  require(nghttp2_session_resume_data(session, stream.id_));
}

void H2Impl::require(int result) {
  if (result == 0) return;
  failed = true;
  if (abuse == H2Abuse::none) abuse = H2Abuse::memory;
}

void H2Impl::queue(H2Stream& stream, std::string_view bytes) {
  if (bytes.empty() || stream.reset_ || stream.dead_) return;
  CARPOOL_ASSERT(!stream.ended_);
  if (stream.sent_ > kKeptQueue && stream.sent_ > stream.queue_.size() / 2) {
    stream.queue_.erase(0, stream.sent_);
    stream.sent_ = 0;
  }
  stream.queue_.append(bytes);
  backlog += bytes.size();
  resume(stream);
}

// The owner leaves the stream; its queue remains.
void H2Impl::detach(H2Stream& stream) {
  stream.user_ = nullptr;
  stream.detached_ = true;
  give_window(stream, stream.unconsumed_);
}

void H2Impl::drop_queue(H2Stream& stream) {
  static_cast<void>(take_waiting(stream));
  backlog -= stream.backlog();
  stream.queue_.clear();
  stream.sent_ = 0;
}

void H2Impl::submit_reset(H2Stream& stream, H2Error error) {
  if (stream.reset_ || stream.dead_) return;
  stream.reset_ = true;
  past.note_reset_by_us(stream.id_);
  drop_queue(stream);
  require(nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream.id_, static_cast<std::uint32_t>(error)));
}

// A reset discards everything of its stream that is not in frames yet, including the head.
void H2Impl::cut_if_drained(H2Stream& stream) {
  if (stream.cut_ && stream.heads_ == 0 && stream.backlog() == 0) submit_reset(stream, *stream.cut_);
}

void H2Impl::give_window(H2Stream& stream, std::size_t bytes) {
  if (bytes > stream.unconsumed_) bytes = stream.unconsumed_;
  if (bytes == 0) return;
  stream.unconsumed_ -= bytes;
  const bool over = stream.dead_ || stream.peer_ended_;  // no more frames arrive on the stream itself
  if (options.shared_window_is_free) {
    if (!over) return_window(stream, bytes);
  } else if (over) {
    require(nghttp2_session_consume_connection(session, bytes));
  } else {
    require(nghttp2_session_consume(session, stream.id_, bytes));
  }
}

// Uses our own accounting: the library bases its window on the peer's acknowledgement of SETTINGS, which may come late
// or never, and until then it would wait for half of a window that the peer does not have.
void H2Impl::return_window(H2Stream& stream, std::size_t bytes) {
  // The maximum padding of a frame. The library returns padding at half of its window, which never happens, because
  // each update of ours, which includes the padding, comes first.
  constexpr std::uint32_t kMaxPadding = 256;
  stream.returned_ += static_cast<std::uint32_t>(bytes);
  if (stream.returned_ + kMaxPadding < stream.window_ / 2) return;
  const auto more = static_cast<std::int32_t>(std::exchange(stream.returned_, 0));
  require(nghttp2_submit_window_update(session, NGHTTP2_FLAG_NONE, stream.id_, more));
}

void H2Impl::widen(H2Stream& stream) {
  const std::uint32_t window = std::exchange(stream.widen_to_, 0);
  if (window <= stream.window_) return;
  const auto more = static_cast<std::int32_t>(window - std::exchange(stream.window_, window));
  require(nghttp2_submit_window_update(session, NGHTTP2_FLAG_NONE, stream.id_, more));
}

void H2Impl::report_sent() {
  while (!moved.empty()) {
    H2Stream& stream = moved.pop_front();
    const std::size_t bytes = std::exchange(stream.moved_, 0);
    if (stream.user_ != nullptr) stream.user_->on_sent(bytes);
  }
}

void H2Impl::release_memory() {
  memory.trim();
  while (!spare.empty()) {
    const std::unique_ptr<H2Stream> dies(&spare.pop_front());
  }
  spares = 0;
  std::vector<nghttp2_nv>().swap(nva);
}

const std::vector<nghttp2_nv>& H2Impl::list(const H2Fields& fields) {
  nva.resize(fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const H2Fields::Field field = fields[i];
    nva[i] = name_value(field.name, field.value, field.sensitive);
  }
  return nva;
}

const std::vector<nghttp2_nv>& H2Impl::list(const Fields& fields) {
  nva.clear();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Fields::Field field = fields[i];
    nva.push_back(name_value(field.name, field.value, fields.sensitive(i)));
  }
  return nva;
}

}  // namespace carpool::proxy::http
