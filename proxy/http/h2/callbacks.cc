// The callbacks of nghttp2: each looks up the session and forwards the event. They must not throw; allocation failure
// terminates the process.
#include <algorithm>
#include <new>
#include <utility>

#include "base/c_allocator.h"
#include "proxy/http/h2/session_impl.h"

namespace carpool::proxy::http {

namespace {

H2Impl& impl(void* user) {
  return *static_cast<H2Impl*>(user);
}

std::string_view text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

int on_begin_frame(nghttp2_session* /*session*/, const nghttp2_frame_hd* hd, void* user) noexcept {
  H2Impl& self = impl(user);
  const bool ack = (hd->flags & NGHTTP2_FLAG_ACK) != 0;
  switch (hd->type) {
    case NGHTTP2_SETTINGS:
      if (!ack) self.note(H2Guard::Frame::settings);
      self.note_queue();
      break;
    case NGHTTP2_PING:
      if (!ack) self.note(H2Guard::Frame::ping);
      break;
    case NGHTTP2_PRIORITY:
      self.note(H2Guard::Frame::priority);
      break;
    case NGHTTP2_WINDOW_UPDATE:
      self.note(H2Guard::Frame::window_update);
      break;
    case NGHTTP2_GOAWAY:
      self.note(H2Guard::Frame::goaway);
      break;
    case NGHTTP2_DATA:
      if (hd->length == 0 && (hd->flags & NGHTTP2_FLAG_END_STREAM) == 0) self.note(H2Guard::Frame::empty);
      break;
    case NGHTTP2_HEADERS:
      self.check_late_frame(hd->stream_id);
      [[fallthrough]];
    case NGHTTP2_CONTINUATION:
      if (hd->length == 0) self.note(H2Guard::Frame::empty);
      break;
    default:
      break;
  }
  return 0;
}

int on_begin_headers(nghttp2_session* /*session*/, const nghttp2_frame* frame, void* user) noexcept {
  if (frame->hd.type == NGHTTP2_HEADERS) impl(user).begin_block(*frame);
  return 0;
}

int on_header(nghttp2_session* /*session*/, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t namelen,
              const std::uint8_t* value, std::size_t valuelen, std::uint8_t flags, void* user) noexcept {
  H2Impl& self = impl(user);
  if (frame->hd.type != NGHTTP2_HEADERS || self.block == nullptr) return 0;
  self.on_field(text(name, namelen), text(value, valuelen), (flags & NGHTTP2_NV_FLAG_NO_INDEX) != 0);
  // The rest of the block is decoded, because HPACK state depends on it, but not delivered.
  return self.terminating ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE : 0;
}

int on_frame_recv(nghttp2_session* /*session*/, const nghttp2_frame* frame, void* user) noexcept {
  H2Impl& self = impl(user);
  const bool ack = (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0;
  switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
      self.end_block(*frame);
      self.forget_block();
      break;
    case NGHTTP2_DATA:
      if (frame->data.padlen != 0) self.on_padding(frame->hd.stream_id, frame->data.padlen);
      if (H2Stream* stream = self.find(frame->hd.stream_id)) {
        const bool end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
        self.end_data(*stream, frame->hd.length == frame->data.padlen, end);
      }
      break;
    case NGHTTP2_SETTINGS:
      ack ? self.sink.on_settings_ack() : self.on_peer_settings();
      break;
    case NGHTTP2_PING:
      if (ack) self.on_ping_ack(frame->ping.opaque_data);
      break;
    case NGHTTP2_GOAWAY:
      self.sink.on_goaway(frame->goaway.last_stream_id, h2_error(frame->goaway.error_code));
      break;
    case NGHTTP2_RST_STREAM:
      self.on_reset_frame(frame->hd.stream_id);
      break;
    default:
      break;
  }
  return 0;
}

// Notes a stream that the library rejected: further frames of the client on it are ignored.
int on_invalid_frame(nghttp2_session* /*session*/, const nghttp2_frame* frame, int /*error*/, void* user) noexcept {
  H2Impl& self = impl(user);
  self.past.note_opened(frame->hd.stream_id);
  self.past.note_reset_by_us(frame->hd.stream_id);
  return 0;
}

int on_data_chunk(nghttp2_session* /*session*/, std::uint8_t /*flags*/, std::int32_t id, const std::uint8_t* data,
                  std::size_t size, void* user) noexcept {
  H2Impl& self = impl(user);
  if (H2Stream* stream = self.find(id)) self.on_data(*stream, text(data, size));
  return 0;
}

int on_stream_close(nghttp2_session* /*session*/, std::int32_t id, std::uint32_t error, void* user) noexcept {
  H2Impl& self = impl(user);
  if (H2Stream* stream = self.find(id)) self.close(*stream, h2_error(error));
  return 0;
}

int on_frame_send(nghttp2_session* /*session*/, const nghttp2_frame* frame, void* user) noexcept {
  impl(user).on_sent(*frame);
  return 0;
}

int on_frame_not_send(nghttp2_session* /*session*/, const nghttp2_frame* frame, int /*error*/, void* user) noexcept {
  H2Impl& self = impl(user);
  if (frame->hd.type != NGHTTP2_HEADERS) return 0;
  if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
    self.on_never_sent(frame->hd.stream_id);
  } else {
    self.on_head_dropped(frame->hd.stream_id);
  }
  return 0;
}

// Returns how much of the queue the next frame carries; send_data() copies the bytes.
ssize_t read_body(nghttp2_session* session, std::int32_t id, std::uint8_t* /*buf*/, std::size_t most,
                  std::uint32_t* flags, nghttp2_data_source* source, void* user) noexcept {
  return impl(user).next_frame(*static_cast<H2Stream*>(source->ptr), session, id, most, *flags);
}

int send_data(nghttp2_session* /*session*/, nghttp2_frame* /*frame*/, const std::uint8_t* head, std::size_t size,
              nghttp2_data_source* source, void* user) noexcept {
  constexpr std::size_t kFrameHead = 9;
  return impl(user).write_frame(*static_cast<H2Stream*>(source->ptr), text(head, kFrameHead), size);
}

}  // namespace

nghttp2_data_provider h2_body_of(H2Stream& stream) {
  nghttp2_data_provider provider{};
  provider.source.ptr = &stream;
  provider.read_callback = read_body;
  return provider;
}

const nghttp2_session_callbacks* h2_callbacks() {
  static const nghttp2_session_callbacks* const made = [] {
    nghttp2_session_callbacks* all = nullptr;
    while (nghttp2_session_callbacks_new(&all) != 0) {  // it does not use nghttp2_mem
      if (!c_allocator::ask_for_memory()) throw std::bad_alloc();
    }
    nghttp2_session_callbacks_set_on_begin_frame_callback(all, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(all, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(all, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(all, on_frame_recv);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(all, on_invalid_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(all, on_data_chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(all, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(all, on_frame_send);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(all, on_frame_not_send);
    nghttp2_session_callbacks_set_send_data_callback(all, send_data);
    return all;
  }();
  return made;
}

}  // namespace carpool::proxy::http
