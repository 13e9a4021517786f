#include "proxy/http/h2/session.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "base/assert.h"
#include "base/c_allocator.h"
#include "proxy/http/h2/session_impl.h"

namespace carpool::proxy::http {

namespace {

nghttp2_mem memory_of(H2Memory& memory) {
  nghttp2_mem all{};
  all.mem_user_data = &memory;
  all.malloc = [](std::size_t size, void* of) -> void* { return static_cast<H2Memory*>(of)->allocate(size); };
  all.free = [](void* block, void* of) { static_cast<H2Memory*>(of)->give(block); };
  all.calloc = [](std::size_t count, std::size_t size, void* of) -> void* {
    void* block = static_cast<H2Memory*>(of)->allocate(count * size);
    return block == nullptr ? nullptr : std::memset(block, 0, count * size);
  };
  all.realloc = [](void* block, std::size_t size, void* of) -> void* {
    return static_cast<H2Memory*>(of)->resize(block, size);
  };
  return all;
}

struct FreeOption {
  void operator()(nghttp2_option* option) const { nghttp2_option_del(option); }
};

// kMaxBlock: limit of a head or of trailers that are sent, encoded. They were limited when they were received. The
// library's own limit is 64 KiB, which a response may exceed (H2LoopContext::response_limits()).
constexpr std::size_t kMaxBlock = std::size_t{1} << 20;

// Returns the limit of CONTINUATION frames of one header block: as many of 1 KiB as hold the largest block that is
// decoded. The library's own limit of 8 would end the session for a valid head.
std::size_t max_continuations(const H2Options& options) {
  constexpr std::size_t kSmallFrame = 1024, kLeast = 64;
  return std::max(kLeast, kBlockGrowth * options.head.header_bytes / kSmallFrame);
}

// Turns off the library's checks of messages: H2HeadReader checks them once, and more strictly.
std::unique_ptr<nghttp2_option, FreeOption> options_of(const H2Options& options) {
  nghttp2_option* raw = nullptr;
  while (nghttp2_option_new(&raw) != 0) {  // it does not use nghttp2_mem
    if (!c_allocator::ask_for_memory()) throw std::bad_alloc();
  }
  nghttp2_option_set_no_auto_window_update(raw, 1);
  nghttp2_option_set_no_http_messaging(raw, 1);
  nghttp2_option_set_no_closed_streams(raw, 1);
  nghttp2_option_set_max_deflate_dynamic_table_size(raw, options.header_table);
  nghttp2_option_set_max_outbound_ack(raw, 200);
  nghttp2_option_set_max_send_header_block_length(raw, kMaxBlock);
  nghttp2_option_set_max_continuations(raw, max_continuations(options));
  nghttp2_option_set_max_reserved_remote_streams(raw, 0);
  nghttp2_option_set_stream_reset_rate_limit(raw, 1000000, 1000000);  // H2Guard counts resets
  return std::unique_ptr<nghttp2_option, FreeOption>(raw);
}

// Returns an error if there is no memory.
int announce(nghttp2_session* session, H2Role role, const H2Options& options) {
  std::vector<nghttp2_settings_entry> all;
  if (role == H2Role::server) {
    all.push_back({NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options.max_streams});
    all.push_back({NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1});
    if (options.extended_connect) all.push_back({NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1});
  } else {
    all.push_back({NGHTTP2_SETTINGS_ENABLE_PUSH, 0});
    all.push_back({NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0});
  }
  all.push_back({NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, options.head.header_bytes});
  if (options.stream_window != NGHTTP2_INITIAL_WINDOW_SIZE) {
    all.push_back({NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, options.stream_window});
  }
  if (options.header_table != NGHTTP2_DEFAULT_HEADER_TABLE_SIZE) {
    all.push_back({NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, options.header_table});
  }
  const int submitted = nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, all.data(), all.size());
  if (submitted != 0) return submitted;
  const auto window = static_cast<std::int32_t>(options.window);
  return nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, window);
}

H2Abuse abuse_of(int error) {
  switch (error) {
    case NGHTTP2_ERR_FLOODED:
      return H2Abuse::control;
    case NGHTTP2_ERR_TOO_MANY_CONTINUATIONS:
      return H2Abuse::continuations;
    case NGHTTP2_ERR_NOMEM:
      return H2Abuse::memory;
    default:
      return H2Abuse::none;
  }
}

}  // namespace

H2Session::H2Session(H2Role role, const H2Options& options, H2Sink& sink)
    : impl_(std::make_unique<H2Impl>(role, options, sink)) {
  const auto set = options_of(options);
  nghttp2_mem memory = memory_of(impl_->memory);
  const int made = role == H2Role::server
                       ? nghttp2_session_server_new3(&impl_->session, h2_callbacks(), impl_.get(), set.get(), &memory)
                       : nghttp2_session_client_new3(&impl_->session, h2_callbacks(), impl_.get(), set.get(), &memory);
  if (made != 0) throw std::bad_alloc();  // the only possible error
  if (announce(impl_->session, role, options) != 0) throw std::bad_alloc();
}

H2Session::~H2Session() = default;

// Must be called by each function that may cause something to be sent.
H2Impl& H2Session::change() {
  impl_->quiet = false;
  return *impl_;
}

// ---- bytes ----

Status H2Session::receive(std::string_view bytes, Instant now) {
  H2Impl& self = *impl_;
  self.now = now;
  const Side side = self.role == H2Role::server ? Side::client : Side::upstream;
  const FaultKind kind = self.role == H2Role::server ? FaultKind::malformed_request : FaultKind::malformed_response;
  if (self.failed) return Fault{kind, side, "bytes after the end of an HTTP/2 session"};
  CARPOOL_ASSERT(!self.receiving);
  self.receiving = true;
  self.watch_frames(bytes);
  const ssize_t consumed = self.feed(bytes);
  self.receiving = false;
  change();  // acknowledgements and window updates
  if (consumed >= 0) return Done{};
  const auto error = static_cast<int>(consumed);
  if (self.abuse == H2Abuse::none) self.abuse = abuse_of(error);
  self.terminating = true;
  const auto code = self.abuse == H2Abuse::none ? H2Error::protocol_error : H2Error::enhance_your_calm;
  self.require(nghttp2_session_terminate_session(self.session, static_cast<std::uint32_t>(code)));
  return Fault{kind, side, nghttp2_strerror(error)};
}

bool H2Session::receiving() const {
  return impl_->receiving;
}

bool H2Session::pull(std::string& out, std::size_t most, Instant now) {
  H2Impl& self = *impl_;
  CARPOOL_ASSERT(!self.receiving);  // the library may free the stream whose frame it reports
  self.now = now;
  self.out = &out;
  self.most_out = most;
  while (!self.failed && out.size() < most) {
    const std::uint8_t* data = nullptr;
    if (!self.waiting.empty()) self.submit_waiting();
    const ssize_t size = nghttp2_session_mem_send(self.session, &data);
    if (size == 0 && out.size() < most) {
      if (self.refuse_waiting()) continue;
      self.quiet = true;
    }
    if (size < 0) {
      self.failed = true;
      if (self.abuse == H2Abuse::none) self.abuse = abuse_of(static_cast<int>(size));
    }
    if (size <= 0) break;
    self.append_frame({reinterpret_cast<const char*>(data), static_cast<std::size_t>(size)});
  }
  self.out = nullptr;
  self.report_sent();
  return !self.failed;
}

bool H2Session::wants_pull() const {
  H2Impl& self = *impl_;
  if (self.failed || self.quiet) return false;
  self.quiet = nghttp2_session_want_write(self.session) == 0 && self.waiting.empty();
  return !self.quiet;
}

bool H2Session::over() const {
  return impl_->failed || (nghttp2_session_want_read(impl_->session) == 0 && !wants_pull());
}

// ---- messages ----

Result<H2Stream*> H2Session::request(const H2Fields& fields, H2StreamUser& user, bool end, bool head_request) {
  H2Impl& self = change();
  if (!self.has_memory_for(fields.bytes())) {
    return Fault{FaultKind::connection_terminated, Side::upstream, "too many requests wait to be sent"};
  }
  H2Stream& stream = self.open(0);
  const std::vector<nghttp2_nv>& all = self.list(fields);
  const nghttp2_data_provider body = h2_body_of(stream);
  const StreamId id =
      nghttp2_submit_request(self.session, nullptr, all.data(), all.size(), end ? nullptr : &body, &stream);
  if (id < 0) {
    self.free(stream);
    return Fault{FaultKind::connection_terminated, Side::upstream, nghttp2_strerror(id)};
  }
  stream.id_ = id;
  stream.user_ = &user;
  stream.responded_ = true;
  stream.ended_ = end;
  stream.head_request_ = head_request;
  stream.window_ = self.options.stream_window;
  self.guard.note_request();
  return &stream;
}

void H2Session::inform(H2Stream& stream, const H2Fields& fields) {
  if (stream.reset_ || stream.dead_ || stream.responded_) return;
  change().inform(stream, fields);
}

void H2Session::respond(H2Stream& stream, const H2Fields& fields, bool end) {
  if (stream.reset_ || stream.dead_) return;
  CARPOOL_ASSERT(!stream.responded_);
  stream.responded_ = true;
  stream.ended_ = end;
  change().respond(stream, fields);
}

void H2Session::body(H2Stream& stream, std::string_view bytes) {
  change().queue(stream, bytes);
}

void H2Session::end(H2Stream& stream) {
  if (stream.reset_ || stream.dead_) return;
  stream.ended_ = true;
  change().resume(stream);
}

void H2Session::end(H2Stream& stream, const Fields& trailers) {
  if (stream.reset_ || stream.dead_) return;
  if (impl_->may_send(stream, trailers)) return change().submit_trailers(stream, trailers);
  stream.trailers_ = trailers;
  end(stream);
}

void H2Session::leave(H2Stream& stream) {
  H2Impl& self = change();
  self.detach(stream);
  if (!stream.responded_) return self.submit_reset(stream, H2Error::internal_error);
  self.stop_upload(stream);
}

void H2Session::reset(H2Stream& stream, H2Error error) {
  stream.user_ = nullptr;
  change().submit_reset(stream, error);
}

void H2Session::cut(H2Stream& stream, H2Error error) {
  H2Impl& self = change();
  self.detach(stream);
  stream.cut_ = error;
  self.cut_if_drained(stream);
}

void H2Session::reset_detached(H2Error error) {
  H2Impl& self = change();
  for (H2Stream& stream : self.streams) {
    if (stream.detached_ && !stream.end_sent_) self.submit_reset(stream, error);
  }
}

void H2Session::widen(H2Stream& stream, std::uint32_t window) {
  if (stream.dead_ || stream.peer_ended_) return;
  stream.widen_to_ = window;
  if (stream.head_sent_) change().widen(stream);
}

void H2Session::consume(H2Stream& stream, std::size_t bytes) {
  change().give_window(stream, bytes);
}

// ---- connection ----

void H2Session::ping(std::uint64_t payload) {
  std::uint8_t bytes[sizeof payload];
  std::memcpy(bytes, &payload, sizeof payload);
  change().require(nghttp2_submit_ping(impl_->session, NGHTTP2_FLAG_NONE, bytes));
}

void H2Session::announce_shutdown() {
  change().require(nghttp2_submit_shutdown_notice(impl_->session));
}

void H2Session::goaway(H2Error error) {
  H2Impl& self = change();
  self.last_taken = std::min(self.last_taken, nghttp2_session_get_last_proc_stream_id(self.session));
  self.require(nghttp2_submit_goaway(self.session, NGHTTP2_FLAG_NONE, self.last_taken,
                                     static_cast<std::uint32_t>(error), nullptr, 0));
}

void H2Session::terminate(H2Error error, H2Abuse abuse) {
  H2Impl& self = change();
  self.stopped_by_owner |= !self.terminating;
  self.stop(error, abuse);
}

bool H2Session::accepts_requests() const {
  return !impl_->failed && !impl_->terminating && nghttp2_session_check_request_allowed(impl_->session) != 0;
}

bool H2Session::out_of_streams() const {
  return nghttp2_session_get_next_stream_id(impl_->session) > std::numeric_limits<StreamId>::max();
}
void H2Session::skip_streams(StreamId next) {
  CARPOOL_ASSERT(nghttp2_session_set_next_stream_id(impl_->session, next) == 0);
}

Instant H2Session::head_began() const {
  return impl_->block != nullptr ? impl_->block_began : kNever;
}
bool H2Session::window_open(const H2Stream& stream) const {
  return nghttp2_session_get_stream_remote_window_size(impl_->session, stream.id_) > 0;
}
std::size_t H2Session::streams() const {
  return impl_->stream_count;
}
std::size_t H2Session::backlog() const {
  return impl_->backlog;
}
std::uint64_t H2Session::messages_framed() const {
  return impl_->messages_framed;
}
std::size_t H2Session::library_memory() const {
  return impl_->memory.in_use();
}

void H2Session::release_memory() {
  impl_->release_memory();
}

H2Abuse H2Session::abuse() const {
  return impl_->abuse;
}
const std::string& H2Session::connection_error() const {
  return impl_->connection_error;
}
H2PeerSettings H2Session::peer() const {
  return impl_->peer();
}

}  // namespace carpool::proxy::http
