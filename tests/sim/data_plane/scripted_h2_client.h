// ScriptedH2Client: an HTTP/2 client of a plan, on nghttp2's client session. It checks each byte that it reads against
// the request of the byte's stream.
#pragma once

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/data_plane/plane_client.h"
#include "tests/sim/data_plane/request_text.h"
#include "tests/sim/data_plane/response_check.h"
#include "tests/sim/data_plane/returned_windows.h"
#include "tests/sim/data_plane/split_headers.h"

namespace carpool::test {

class ScriptedH2Client final : public PlaneClient {
 public:
  ScriptedH2Client(const ClientPlan& plan, Account& account, std::size_t room)
      : PlaneClient(plan, account, room), frames_(account, wire, FrameCheck::Peer::client) {
    nghttp2_session_callbacks* calls = nullptr;
    nghttp2_session_callbacks_new(&calls);
    nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(calls, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(calls, on_close);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(calls, on_invalid);
    nghttp2_session_client_new2(&session_, calls, this, ReturnedWindows().get());
    nghttp2_session_callbacks_del(calls);
    set_window(plan.window);
    widen(session_, plan.wide);
  }
  ~ScriptedH2Client() override { nghttp2_session_del(session_); }
  FrameCheck* frames() override { return &frames_; }
  std::vector<std::pair<std::uint32_t, const RequestRecord*>> streams() const override {
    std::vector<std::pair<std::uint32_t, const RequestRecord*>> all;
    for (const auto& [id, stream] : streams_) all.emplace_back(static_cast<std::uint32_t>(id), stream.request);
    return all;
  }

  bool send() override {
    if (over()) return false;
    bool moved = give_up();
    moved |= go_on();
    if (streams_.size() <= plan_.pipelines && nghttp2_session_check_request_allowed(session_) != 0) {
      if (RequestRecord* const one = next()) {
        ask(*one);
        moved = true;
      }
    }
    return flush() || moved;
  }
  bool read(std::size_t most) override {
    if (left() || stopped_reading()) return false;
    const std::string bytes = wire.take(may_read(most));
    account_.log_bytes(bytes);
    count_read(bytes.size());
    const auto* from = reinterpret_cast<const std::uint8_t*>(bytes.data());
    if (!bytes.empty() && nghttp2_session_mem_recv(session_, from, bytes.size()) < 0 && !wire.noisy()) {
      account_.complain("a client received bytes that are no HTTP/2");
    }
    if (!bytes.empty()) {
      give_up();
      flush();
      return true;
    }
    if (!sees_close()) return false;
    account_.log("close", streams_.size());
    for (const auto& [id, stream] : streams_) {
      if (blamed_ == 0) check_lost(*stream.request, stream.sent_at);
    }
    return true;
  }
  const RequestRecord* open_request() const override {
    return streams_.empty() ? nullptr : streams_.begin()->second.request;
  }

 private:
  struct Stream {
    RequestRecord* request = nullptr;
    std::string body;
    std::size_t sent = 0;
    std::uint32_t status = 0;  // of the block that is being received
    std::uint32_t status_of_head = 0;
    std::string mark, tail, pad, cause;
    bool waits = false;  // for the head that opens the tunnel
    bool tunnel = false;
    bool over = false;          // the proxy ended the tunnel, or refused it
    std::uint64_t sent_at = 0;  // bytes of the client until the end of its head; 0: not sent
    int continue_waits = 0;     // how often it still waits for 100 (Continue)
    // The tunnel ends after its client's bytes, or after the origin's end.
    bool ends() const { return !request->tunnels() || request->plan.gives_up == 1 || over; }
  };

  void ask(RequestRecord& one) {
    account_.note_asked(one);
    const bool again = again_.erase(&one) != 0;  // without Expect
    if (plan_.window != 0 && ++asked_ % 3 == 0) set_window(1000 + plan_.window * asked_ % 59'000);
    for (std::uint32_t n = 0; n < plan_.pings; ++n) nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
    const std::string method = one.plan.method == kUpgrade ? "CONNECT" : one.method(), path = "/" + one.token;
    const std::string length = std::to_string(one.plan.size);
    const bool connect = one.plan.method == kConnect, counted = one.body_size() != 0 && one.plan.chunked == 0;
    const std::string host = connect ? one.host + ":443" : one.host;
    std::vector<nghttp2_nv> head{field(":method", method), field(":authority", host)};
    if (!connect) head.insert(head.end(), {field(":scheme", one.secure ? "https" : "http"), field(":path", path)});
    if (one.plan.method == kUpgrade) head.push_back(field(":protocol", "marks"));
    const std::string proof = proof_of(one.token);
    if (!connect) head.insert(head.end(), {field(kMarkField, one.token), field(kProofField, proof)});
    if (counted && !one.tunnels()) head.push_back(field("content-length", length));
    if (one.plan.auth != 0 && !connect) head.push_back(field("authorization", "Negotiate dG9rZW4="));
    if (one.plan.urgent != 0) head.push_back(field("priority", "u=0"));
    const std::string pad = marked(one.token, one.plan.fields);
    if (!pad.empty() && !connect) head.push_back(field(kPadField, pad));
    if (one.plan.expect != 0 && one.body_size() != 0 && !again) head.push_back(field("expect", "100-continue"));
    const bool has_body = one.method() == "POST" || one.method() == "PUT";
    Stream fresh;
    fresh.request = &one;
    if (has_body) fresh.body = marked(one.token, one.plan.size);
    if (one.tunnels()) fresh.body = tunnel_bytes(one);
    fresh.waits = one.tunnels() && !(connect && one.plan.chunked != 0);
    if (expects(one) && !again) fresh.continue_waits = kWaits;
    const std::int32_t id = static_cast<std::int32_t>(nghttp2_session_get_next_stream_id(session_));
    nghttp2_data_provider body{};
    streams_[id] = std::move(fresh);
    body.read_callback = read_body;
    nghttp2_submit_request(session_, nullptr, head.data(), head.size(), has_body || one.tunnels() ? &body : nullptr,
                           nullptr);
    if (plan_.goaway != 0 && !any_waiting()) goes_ = true;
  }
  // Resets the streams whose requests the plan cancels.
  bool give_up() {
    bool moved = false;
    for (auto at = streams_.begin(); at != streams_.end();) {
      const RequestRecord& one = *at->second.request;
      const std::uint32_t most = one.plan.gives_up;
      const bool enough = one.tunnels() ? most > 1 && one.received + 2 >= most : most != 0 && one.received + 1 >= most;
      if (!enough || nghttp2_session_find_stream(session_, at->first) == nullptr) {
        ++at;
        continue;
      }
      nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, at->first, NGHTTP2_CANCEL);
      account_.log("gives up", one.received);
      at = streams_.erase(at);
      moved = true;
    }
    return moved;
  }
  bool flush() {
    std::size_t before = wire.flying.size();
    for (const std::uint8_t* bytes = nullptr;;) {
      const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
      if (size <= 0) break;
      append_split(wire.flying, {reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size)}, plan_.pieces);
    }
    if (std::exchange(goes_, false)) {
      nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, 0, 0, nullptr, 0);
      return flush() || wire.flying.size() != before;
    }
    count_sent(wire.flying.size() - before);
    for (auto& [id, stream] : streams_) stream.sent_at = stream.sent_at == 0 ? sent() : stream.sent_at;
    return wire.flying.size() != before;
  }
  static nghttp2_nv field(std::string_view name, std::string_view value) {
    const auto bytes = [](std::string_view text) {
      return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
    };
    return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
  }
  Stream* find(std::int32_t id) {
    const auto found = streams_.find(id);
    return found == streams_.end() ? nullptr : &found->second;
  }

  void receive_head(std::int32_t id, Stream& stream) {
    RequestRecord& one = *stream.request;
    const std::uint32_t status = std::exchange(stream.status, 0);
    if (status == 100) let_go(id, stream);
    if (!one.tunnels() || status < 200) {
      check_head(account_, one, status, stream.mark, stream.pad, stream.cause);
      stream.status_of_head = status;
      if (status >= 200 && one.plan.expect == Expecting::sends) let_go(id, stream);
      return;
    }
    stream.waits = false;
    stream.tunnel = status == 200;
    stream.over = !stream.tunnel;
    nghttp2_session_resume_data(session_, id);
    if (!stream.tunnel) {
      check_head(account_, one, status, stream.mark, stream.pad, stream.cause);
      return;
    }
    account_.log("tunnel", one.received);
    if (!stream.mark.empty() && stream.mark.substr(0, 6) != one.token) {
      account_.complain(one, one.token + " received a tunnel of " + stream.mark);
    }
    if (stream.mark.empty() != (one.plan.method == kConnect))
      account_.complain(one, one.token + ": a tunnel of nobody");
    one.answered = true;
  }
  void receive_end(std::int32_t id, Stream& stream) {
    RequestRecord& one = *stream.request;
    if (!stream.tunnel) {
      check_end(account_, one);
      if (stream.continue_waits != 0) answered_before_its_body(id, stream);
      return;
    }
    ++one.ends;
    stream.over = true;
    account_.log("tunnel's end", one.received);
    account_.check_tunnel(one);
    nghttp2_session_resume_data(session_, id);
  }

  // ---- 100 (Continue) ----
  // Clients that have waited long enough send their bodies.
  bool go_on() {
    bool moved = false;
    for (auto& [id, stream] : streams_) {
      if (stream.continue_waits == 0 || stream.request->plan.expect == Expecting::strict ||
          --stream.continue_waits != 0)
        continue;
      stream.continue_waits = 1;
      let_go(id, stream);
      moved = true;
    }
    return moved;
  }
  void let_go(std::int32_t id, Stream& stream) {
    if (std::exchange(stream.continue_waits, 0) != 0) nghttp2_session_resume_data(session_, id);
  }
  // The final response came without the request's body, which is no longer needed.
  void answered_before_its_body(std::int32_t id, Stream& stream) {
    RequestRecord& one = *stream.request;
    const bool repeats = one.plan.expect == Expecting::repeats && stream.status_of_head == 417 && plan_.goaway == 0;
    if (nghttp2_session_find_stream(session_, id) != nullptr) {
      nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
    }
    streams_.erase(id);
    if (!repeats) return;
    one.ask_again();
    again_.insert(&one);
    ask_first(one);
  }

  void set_window(std::uint32_t size) {
    const nghttp2_settings_entry window{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, size};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, &window, size != 0 ? 1 : 0);
  }

  // ---- nghttp2's calls ----
  static ssize_t read_body(nghttp2_session*, std::int32_t id, std::uint8_t* to, std::size_t most, std::uint32_t* flags,
                           nghttp2_data_source*, void* user);
  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                       const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* self);
  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes, std::size_t size,
                     void* user);
  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user);
  static int on_close(nghttp2_session*, std::int32_t id, std::uint32_t error, void* user);
  static int on_invalid(nghttp2_session*, const nghttp2_frame* frame, int error, void* user);

  nghttp2_session* session_ = nullptr;
  std::map<std::int32_t, Stream> streams_;  // that are open
  bool goes_ = false;                       // a GOAWAY is next
  std::set<const RequestRecord*> again_;    // to be sent again without Expect
  std::uint32_t asked_ = 0;
  std::uint32_t blamed_ = 0;  // the error of the proxy's GOAWAY
  FrameCheck frames_;
};

inline ssize_t ScriptedH2Client::read_body(nghttp2_session* session, std::int32_t id, std::uint8_t* to,
                                           std::size_t most, std::uint32_t* flags, nghttp2_data_source*, void* user) {
  Stream* const stream = static_cast<ScriptedH2Client*>(user)->find(id);
  if (stream == nullptr || stream->waits || stream->continue_waits != 0) return NGHTTP2_ERR_DEFERRED;  // or cancelled
  const RequestRecord& one = *stream->request;
  const std::size_t whole = stream->body.size() - (one.plan.stalls != 0 && !one.tunnels() && !stream->body.empty());
  const std::size_t size = std::min(most, whole - stream->sent);
  std::memcpy(to, stream->body.data() + stream->sent, size);
  stream->sent += size;
  if (stream->sent == stream->body.size() && stream->ends()) {
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (one.has_tail()) {
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const nghttp2_nv tail = field(kTailField, one.token);
      nghttp2_submit_trailer(session, id, &tail, 1);
    }
  } else if (size == 0) {
    return NGHTTP2_ERR_DEFERRED;
  }
  return static_cast<ssize_t>(size);
}
inline int ScriptedH2Client::on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                                       std::uint8_t, void* user) {
  Stream* const stream = static_cast<ScriptedH2Client*>(user)->find(frame->hd.stream_id);
  if (stream == nullptr) return 0;
  const std::string_view key(reinterpret_cast<const char*>(name), name_size);
  const std::string text(reinterpret_cast<const char*>(value), value_size);
  if (key == ":status") {
    stream->status = static_cast<std::uint32_t>(std::atoi(text.c_str()));
    stream->mark.clear();
    stream->pad.clear();
    stream->cause.clear();
  }
  if (key == kMarkField) stream->mark = text;
  if (key == kTailField) stream->tail += text;
  if (key == kPadField) stream->pad = text;
  if (key == kCauseField) stream->cause = text;
  return 0;
}
inline int ScriptedH2Client::on_data(nghttp2_session* session, std::uint8_t, std::int32_t id, const std::uint8_t* bytes,
                                     std::size_t size, void* user) {
  auto& self = *static_cast<ScriptedH2Client*>(user);
  nghttp2_session_consume(session, id, size);
  if (Stream* const stream = self.find(id)) {
    check_body(self.account_, *stream->request, {reinterpret_cast<const char*>(bytes), size});
  }
  return 0;
}
inline int ScriptedH2Client::on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
  auto& self = *static_cast<ScriptedH2Client*>(user);
  if (frame->hd.type == NGHTTP2_GOAWAY) self.blamed_ |= frame->goaway.error_code;
  Stream* const stream = self.find(frame->hd.stream_id);
  if (stream == nullptr) return 0;
  if (frame->hd.type == NGHTTP2_HEADERS && stream->status != 0) self.receive_head(frame->hd.stream_id, *stream);
  if (!stream->tail.empty()) check_tail(self.account_, *stream->request, std::exchange(stream->tail, {}));
  const bool carries = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
  const bool last = carries && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  if (last) self.receive_end(frame->hd.stream_id, *stream);  // the stream may be gone
  return 0;
}
inline int ScriptedH2Client::on_invalid(nghttp2_session*, const nghttp2_frame* frame, int error, void* user) {
  auto& self = *static_cast<ScriptedH2Client*>(user);
  if (self.wire.noisy()) return 0;
  self.account_.complain("a client received an invalid frame of type " + std::to_string(frame->hd.type) + ": " +
                         nghttp2_strerror(error));
  return 0;
}
inline int ScriptedH2Client::on_close(nghttp2_session*, std::int32_t id, std::uint32_t error, void* user) {
  auto& self = *static_cast<ScriptedH2Client*>(user);
  Stream* const stream = self.find(id);
  if (stream == nullptr) return 0;
  RequestRecord& one = *stream->request;
  self.account_.log("stream closed", error);
  // Bytes of a client that resets its connection, or is treated as an attacker, may not arrive.
  one.closed = error == 0 && stream->tunnel && self.plan_.leaves_after == 0 && self.plan_.pieces == 0;
  if (error == 0 && one.ends == 0) self.account_.complain(one, one.token + ": a stream closed without an end");
  if (error != 0 && one.ends == 0 && !one.tunnels()) self.account_.check_cut(one);
  if (error != 0 && one.ends == 0 && stream->tunnel) self.account_.check_tunnel_cut(one);
  self.streams_.erase(id);
  return 0;
}

}  // namespace carpool::test
