// ScriptedH2Origin: the far end of one HTTP/2 connection to an origin, on nghttp2's server session. It responds to each
// attempt as planned: a status of 0 refuses the stream, or ends the session if `reset` follows; fin and reset omit the
// last byte of the body.
#pragma once

#include <nghttp2/nghttp2.h>

#include <array>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/data_plane/account.h"
#include "tests/sim/data_plane/frame_check.h"
#include "tests/sim/data_plane/plan.h"
#include "tests/sim/data_plane/returned_windows.h"
#include "tests/sim/data_plane/split_headers.h"

namespace carpool::test {

class ScriptedH2Origin {
 public:
  // `window`: of its streams, `wide`: of its connection; 0: the protocol's. `pieces`: of its header blocks.
  ScriptedH2Origin(Account& account, VirtualWire& wire, std::uint32_t window, std::uint32_t wide, std::uint32_t pieces)
      : account_(account),
        wire_(wire),
        window_(window),
        pieces_(pieces),
        frames_(account, wire, FrameCheck::Peer::origin) {
    nghttp2_session_callbacks* calls = nullptr;
    nghttp2_session_callbacks_new(&calls);
    nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(calls, on_frame);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(calls, on_invalid);
    nghttp2_session_server_new2(&session_, calls, this, ReturnedWindows().get());
    nghttp2_session_callbacks_del(calls);
    set_window(window_);
    widen(session_, wide);
  }
  ScriptedH2Origin(const ScriptedH2Origin&) = delete;
  ScriptedH2Origin& operator=(const ScriptedH2Origin&) = delete;
  ~ScriptedH2Origin() { nghttp2_session_del(session_); }

  bool read(std::size_t most) {
    if (stopped_reading_) return false;
    const std::string bytes = wire_.take(most);
    account_.log_bytes(bytes);
    if (wire_.ended) return !bytes.empty();
    const auto* from = reinterpret_cast<const std::uint8_t*>(bytes.data());
    if (!bytes.empty() && nghttp2_session_mem_recv(session_, from, bytes.size()) < 0 && !wire_.noisy()) {
      account_.complain("an origin received bytes that are no HTTP/2");
    }
    go_on();
    return send() || !bytes.empty();
  }
  bool reset_when_sent() {
    if (!resets_ || !wire_.flying.empty() || wire_.broken) return false;
    wire_.reset();
    return true;
  }

 private:
  struct Stream {
    std::string path, mark, proof, pad;
    RequestRecord* request = nullptr;
    std::size_t attempt = 0;
    std::uint64_t received = 0;
    std::string body;
    std::size_t sent = 0;
    std::uint32_t error = 0;  // 0: the body is complete
    bool answered = false, silent = false;
    bool tail = false;                // the request's trailers came
    std::string trailer;              // of the response
    std::size_t pause_at = SIZE_MAX;  // of its body
    bool pauses = false;
    Instant goes_on_at{};
    // Some streams that were answered early open their window no more.
    bool needs_no_more() const {
      if (request == nullptr) return false;
      const ResponsePlan& response = request->attempts[attempt].response;
      return response.early != 0 && response.end == ResponseEnd::whole && response.size % 2 != 0;
    }
  };

  // Bodies in a lull go on when the proxy has received what came before and the time has passed.
  void go_on() {
    if (!wire_.flying.empty()) return;
    for (auto& [id, stream] : streams_) {
      if (!stream.pauses) continue;
      const Duration lull = std::chrono::milliseconds(stream.request->attempts[stream.attempt].response.lull);
      if (stream.goes_on_at == Instant{}) stream.goes_on_at = account_.now + lull;
      if (account_.now < stream.goes_on_at) continue;
      stream.pauses = false;
      stream.pause_at = SIZE_MAX;
      nghttp2_session_resume_data(session_, id);
    }
  }

  bool send() {
    if (std::exchange(leaves_, false)) {  // here only: a stream that was received meanwhile is processed
      const std::int32_t last = nghttp2_session_get_last_proc_stream_id(session_);
      nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, last, 0, nullptr, 0);
    }
    bool moved = false;
    for (const std::uint8_t* bytes = nullptr;;) {
      const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
      if (size <= 0) return moved;
      moved = true;
      // More of them count as abuse, for which the proxy ends the session with all its streams.
      constexpr std::size_t kMaxContinuations = 8;
      const std::string_view frame(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
      wire_.malformed_end |= append_split(wire_.flying, frame, pieces_) > kMaxContinuations;
    }
  }
  void begin(std::int32_t id, Stream& stream) {
    stream.request = account_.find(stream.path);
    if (stream.request == nullptr || stream.mark != stream.request->token ||
        stream.proof != proof_of(stream.request->token)) {
      stream.request = nullptr;
      if (account_.noisy_clients || wire_.noisy()) {
        nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_INTERNAL_ERROR);
        return;
      }
      return account_.complain("an origin received a request of nobody: " + stream.path);
    }
    RequestRecord& one = *stream.request;
    account_.log(one.token, static_cast<std::uint64_t>(id));
    account_.check_attempt(one, wire_, true);
    stream.attempt = one.attempts.size();
    AttemptRecord& attempt = one.attempts.emplace_back();
    if (stream.attempt < one.plan.responses.size()) attempt.response = one.plan.responses[stream.attempt];
    attempt.was_idle = id != 1;
    attempt.wire = &wire_;
    attempt.session = true;
    attempt.consumed = wire_.consumed;
    account_.check_pad(one, one.plan.fields, stream.pad);
    if (attempt.response.stops_reading != 0 && one.plan.body_follows()) stopped_reading_ = wire_.malformed_end = true;
    if (window_ != 0 && id % 8 == 5) set_window(1000 + window_ * static_cast<std::uint32_t>(id) % 59'000);
    if (attempt.response.asks != 0 || one.plan.expect == Expecting::strict)
      inform(id, "100", one.token + "/" + std::to_string(stream.attempt));
    if (attempt.response.early != 0) start_response(id, stream);
  }
  void inform(std::int32_t id, const std::string& status, const std::string& mark) {
    wire_.answered = true;
    const std::array<nghttp2_nv, 2> head{field(":status", status), field(kMarkField, mark)};
    nghttp2_submit_headers(session_, NGHTTP2_FLAG_NONE, id, nullptr, head.data(), head.size(), nullptr);
  }
  void end(std::int32_t id, Stream& stream) {
    if (stream.request == nullptr) return;
    if (stream.request->has_tail() != stream.tail) {
      account_.complain(*stream.request, stream.request->token + ": the request's trailers were lost");
    }
    if (stream.received != stream.request->body_size()) {
      account_.complain(*stream.request, stream.request->token + ": an origin received a body of another length");
    }
    start_response(id, stream);
  }
  void start_response(std::int32_t id, Stream& stream) {
    if (std::exchange(stream.answered, true)) return;
    RequestRecord& one = *stream.request;
    AttemptRecord& attempt = one.attempts[stream.attempt];
    const ResponsePlan& plan = attempt.response;
    const std::string mark = one.token + "/" + std::to_string(stream.attempt);
    for (std::uint32_t n = 0; n < plan.informational; ++n) inform(id, std::to_string(interim_status(plan)), mark);
    const bool dies = plan.status == 0 && plan.end == ResponseEnd::reset;
    resets_ |= plan.end == ResponseEnd::reset;
    if (dies) return;
    attempt.refused = plan.status == 421 || (plan.status == 0 && plan.size % 3 != 2);
    if (plan.status == 0) {
      constexpr std::uint32_t kErrors[] = {NGHTTP2_REFUSED_STREAM, NGHTTP2_HTTP_1_1_REQUIRED, NGHTTP2_INTERNAL_ERROR};
      const std::uint32_t error = kErrors[plan.size % 3];
      attempt.wants_h1 = error == NGHTTP2_HTTP_1_1_REQUIRED;
      attempt.reloads = account_.reloads();
      nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, error);
      return;
    }
    if (plan.rogue != 0) send_rogue(id, plan.rogue);
    account_.note_response(attempt);
    respond(id, stream, plan, mark);
    leaves_ |= plan.end == ResponseEnd::surplus;
  }
  // DATA instead of a head: the request fails, and no byte of it reaches a client.
  void send_rogue(std::int32_t id, std::uint32_t size) {
    send();
    wire_.malformed_end = true;
    const auto stream = static_cast<std::uint32_t>(id);
    const char head[] = {0,
                         0,
                         static_cast<char>(size),
                         NGHTTP2_DATA,
                         0,
                         static_cast<char>(stream >> 24),
                         static_cast<char>(stream >> 16),
                         static_cast<char>(stream >> 8),
                         static_cast<char>(stream)};
    wire_.flying.append(head, sizeof head).append(size, 'X');
  }
  void respond(std::int32_t id, Stream& stream, const ResponsePlan& plan, const std::string& mark) {
    const bool bare = stream.request->method() == "HEAD" || plan.status == 204 || plan.status == 304;
    if (!bare) stream.body = marked(stream.request->token, plan.size);
    if (plan.end == ResponseEnd::silent && stream.body.empty()) return;
    wire_.answered = true;
    if (!bare && (plan.end == ResponseEnd::fin || plan.end == ResponseEnd::reset)) {
      if (!stream.body.empty()) stream.body.pop_back();
      stream.error = NGHTTP2_INTERNAL_ERROR;
    }
    if (plan.lull != 0 && plan.end == ResponseEnd::whole && stream.body.size() > 1)
      stream.pause_at = stream.body.size() / 2;
    stream.silent = plan.end == ResponseEnd::silent;
    if (stream.silent) stream.body.pop_back();
    if (plan.trailers != 0 && !bare) stream.trailer = mark;
    const std::string status = std::to_string(plan.status), length = std::to_string(plan.size);
    const std::string pad = marked(stream.request->token, plan.fields);
    const bool counted = plan.framing == 0 && !bare;
    std::vector<nghttp2_nv> head{field(":status", status), field(kMarkField, mark)};
    if (counted) head.push_back(field("content-length", length));
    if (!pad.empty()) head.push_back(field(kPadField, pad));
    const std::string type = "text/event-stream";
    if (plan.events != 0) head.push_back(field("content-type", type));
    const std::string pause = std::to_string(plan.pause);
    if (plan.pause != 0) head.push_back(field("retry-after", pause));
    nghttp2_data_provider body{};
    body.source.ptr = &stream;
    body.read_callback = read_body;
    nghttp2_submit_response(session_, id, head.data(), head.size(), bare ? nullptr : &body);
  }
  void receive_tail(Stream& stream, std::string_view value) {
    stream.tail = true;
    if (stream.request != nullptr && value != stream.request->token) {
      account_.complain(*stream.request,
                        stream.request->token + ": an origin received the trailers of " + std::string(value));
    }
  }
  void set_window(std::uint32_t size) {
    const nghttp2_settings_entry window{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, size};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, &window, size != 0 ? 1 : 0);
  }
  static nghttp2_nv field(std::string_view name, const std::string& value) {
    const auto bytes = [](std::string_view text) {
      return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
    };
    return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
  }

  // ---- nghttp2's calls ----
  static ssize_t read_body(nghttp2_session* session, std::int32_t id, std::uint8_t* to, std::size_t most,
                           std::uint32_t* flags, nghttp2_data_source* source, void*) {
    Stream& stream = *static_cast<Stream*>(source->ptr);
    const std::size_t size = std::min(most, std::min(stream.pause_at, stream.body.size()) - stream.sent);
    stream.pauses = size == 0 && stream.sent == stream.pause_at;
    if (stream.pauses) return NGHTTP2_ERR_DEFERRED;
    std::memcpy(to, stream.body.data() + stream.sent, size);
    stream.sent += size;
    if (stream.sent != stream.body.size()) return static_cast<ssize_t>(size);
    if (stream.silent) return size == 0 ? static_cast<ssize_t>(NGHTTP2_ERR_DEFERRED) : static_cast<ssize_t>(size);
    if (stream.error == 0) *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (stream.error == 0 && !stream.trailer.empty()) {
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const nghttp2_nv tail = field(kTailField, stream.trailer);
      nghttp2_submit_trailer(session, id, &tail, 1);
    }
    if (stream.error != 0 && size == 0) {
      nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, stream.error);
      return NGHTTP2_ERR_DEFERRED;
    }
    return static_cast<ssize_t>(size);
  }
  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                       const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* self) {
    Stream& stream = static_cast<ScriptedH2Origin*>(self)->streams_[frame->hd.stream_id];
    const std::string_view key(reinterpret_cast<const char*>(name), name_size);
    const std::string_view text(reinterpret_cast<const char*>(value), value_size);
    if (key == ":path") stream.path = text;
    if (key == kMarkField) stream.mark = text;
    if (key == kProofField) stream.proof = text;
    if (key == kPadField) stream.pad = text;
    if (key == kTailField) static_cast<ScriptedH2Origin*>(self)->receive_tail(stream, text);
    return 0;
  }
  static int on_data(nghttp2_session* session, std::uint8_t, std::int32_t id, const std::uint8_t* bytes,
                     std::size_t size, void* user) {
    auto& self = *static_cast<ScriptedH2Origin*>(user);
    Stream& stream = self.streams_[id];
    stream.needs_no_more() ? nghttp2_session_consume_connection(session, size)
                           : nghttp2_session_consume(session, id, size);
    if (stream.request == nullptr) return 0;
    const std::string_view text(reinterpret_cast<const char*>(bytes), size);
    if (!bears_mark(stream.request->token, stream.received, text)) {
      self.account_.complain(*stream.request, stream.request->token + ": an origin received foreign bytes");
    }
    stream.received += size;
    return 0;
  }
  static int on_invalid(nghttp2_session*, const nghttp2_frame* frame, int error, void* user) {
    auto& self = *static_cast<ScriptedH2Origin*>(user);
    if (self.wire_.noisy() || self.account_.noisy_clients) return 0;
    self.account_.complain("an origin received an invalid frame of type " + std::to_string(frame->hd.type) + ": " +
                           nghttp2_strerror(error));
    return 0;
  }
  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    auto& self = *static_cast<ScriptedH2Origin*>(user);
    const bool headers = frame->hd.type == NGHTTP2_HEADERS;
    if (!headers && frame->hd.type != NGHTTP2_DATA) return 0;
    Stream& stream = self.streams_[frame->hd.stream_id];
    if (headers && frame->headers.cat == NGHTTP2_HCAT_REQUEST) self.begin(frame->hd.stream_id, stream);
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) self.end(frame->hd.stream_id, stream);
    return 0;
  }

  Account& account_;
  VirtualWire& wire_;
  nghttp2_session* session_ = nullptr;
  std::map<std::int32_t, Stream> streams_;
  bool resets_ = false, leaves_ = false;
  bool stopped_reading_ = false;  // stops reading
  const std::uint32_t window_, pieces_;
  FrameCheck frames_;
};

}  // namespace carpool::test
