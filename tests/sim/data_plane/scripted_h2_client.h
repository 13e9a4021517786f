// ScriptedH2Client: an HTTP/2 client of a plan, on nghttp2's client session. It checks each byte that it reads against
// the request of the byte's stream.
#pragma once

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "tests/sim/data_plane/plane_client.h"
#include "tests/sim/data_plane/response_check.h"

namespace carpool::test {

class ScriptedH2Client final : public PlaneClient {
 public:
  ScriptedH2Client(const ClientPlan& plan, Account& account, std::size_t room) : PlaneClient(plan, account, room) {
    nghttp2_session_callbacks* calls = nullptr;
    nghttp2_session_callbacks_new(&calls);
    nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(calls, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(calls, on_close);
    nghttp2_session_client_new(&session_, calls, this);
    nghttp2_session_callbacks_del(calls);
    const nghttp2_settings_entry window{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, plan.window};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, &window, plan.window != 0 ? 1 : 0);
  }
  ~ScriptedH2Client() override { nghttp2_session_del(session_); }

  bool send() override {
    if (over()) return false;
    bool moved = give_up();
    if (streams_.size() <= plan_.pipelines && nghttp2_session_check_request_allowed(session_) != 0) {
      if (RequestRecord* const one = next()) {
        ask(*one);
        moved = true;
      }
    }
    return flush() || moved;
  }
  bool read(std::size_t most) override {
    if (left()) return false;
    const std::string bytes = wire.take(most);
    const auto* from = reinterpret_cast<const std::uint8_t*>(bytes.data());
    if (!bytes.empty() && nghttp2_session_mem_recv(session_, from, bytes.size()) < 0) {
      account_.complain("a client received bytes that are no HTTP/2");
    }
    if (!bytes.empty()) {
      give_up();
      flush();
      return true;
    }
    if (!sees_close()) return false;
    account_.log("close", streams_.size());
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
    std::string mark;
  };

  void ask(RequestRecord& one) {
    const std::string method = one.method(), path = "/" + one.token;
    const std::string host = "o" + std::to_string(one.plan.origin) + ".test", length = std::to_string(one.plan.size);
    const nghttp2_nv head[] = {field(":method", method), field(":scheme", "http"), field(":authority", host),
                               field(":path", path),     field("x-of", one.token), field("content-length", length)};
    const bool has_body = one.method() == "POST" || one.method() == "PUT";
    Stream fresh;
    fresh.request = &one;
    if (has_body) fresh.body = marked(one.token, one.plan.size);
    const std::int32_t id = static_cast<std::int32_t>(nghttp2_session_get_next_stream_id(session_));
    nghttp2_data_provider body{};
    streams_[id] = std::move(fresh);
    body.read_callback = read_body;
    const bool counted = has_body && one.plan.chunked == 0;
    nghttp2_submit_request(session_, nullptr, head, counted ? 6 : 5, has_body ? &body : nullptr, nullptr);
    if (plan_.goaway != 0 && !any_waiting()) goes_ = true;
  }
  // Resets the streams whose request the plan abandons.
  bool give_up() {
    bool moved = false;
    for (auto at = streams_.begin(); at != streams_.end();) {
      const RequestRecord& one = *at->second.request;
      const bool enough = one.plan.gives_up != 0 && one.received + 1 >= one.plan.gives_up;
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
      append({reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size)});
    }
    if (std::exchange(goes_, false)) {
      nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, 0, 0, nullptr, 0);
      return flush() || wire.flying.size() != before;
    }
    count_sent(wire.flying.size() - before);
    return wire.flying.size() != before;
  }
  // A HEADERS frame is cut into CONTINUATION frames, if the plan says so.
  void append(std::string_view frame) {
    const std::size_t size = frame.size() - std::min<std::size_t>(frame.size(), 9), most = plan_.pieces;
    if (most == 0 || frame.size() < 9 || frame[3] != NGHTTP2_HEADERS || size <= most) {
      wire.flying.append(frame);
      return;
    }
    const std::string_view block = frame.substr(9);
    for (std::size_t at = 0; at < size; at += most) {
      const std::string_view piece = block.substr(at, most);
      const int first = at == 0 ? frame[4] & ~NGHTTP2_FLAG_END_HEADERS : 0;
      const int flags = first | (at + most >= size ? NGHTTP2_FLAG_END_HEADERS : 0);
      const char head[] = {0, 0, static_cast<char>(piece.size()), static_cast<char>(at == 0 ? 1 : NGHTTP2_CONTINUATION),
                           static_cast<char>(flags)};
      wire.flying.append(head, sizeof head).append(frame.substr(5, 4)).append(piece);
    }
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

  // ---- nghttp2's calls ----
  static ssize_t read_body(nghttp2_session*, std::int32_t id, std::uint8_t* to, std::size_t most, std::uint32_t* flags,
                           nghttp2_data_source*, void* user);
  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                       const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* self);
  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes, std::size_t size,
                     void* user);
  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user);
  static int on_close(nghttp2_session*, std::int32_t id, std::uint32_t error, void* user);

  nghttp2_session* session_ = nullptr;
  std::map<std::int32_t, Stream> streams_;  // that are open
  bool goes_ = false;                       // a GOAWAY is next
};

inline ssize_t ScriptedH2Client::read_body(nghttp2_session*, std::int32_t id, std::uint8_t* to, std::size_t most,
                                           std::uint32_t* flags, nghttp2_data_source*, void* user) {
  Stream* const stream = static_cast<ScriptedH2Client*>(user)->find(id);
  if (stream == nullptr) return NGHTTP2_ERR_DEFERRED;  // the client gave it up: its reset is next
  const std::size_t size = std::min(most, stream->body.size() - stream->sent);
  std::memcpy(to, stream->body.data() + stream->sent, size);
  stream->sent += size;
  if (stream->sent == stream->body.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
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
  }
  if (key == kMarkField) stream->mark = text;
  return 0;
}
inline int ScriptedH2Client::on_data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes,
                                     std::size_t size, void* user) {
  auto& self = *static_cast<ScriptedH2Client*>(user);
  if (Stream* const stream = self.find(id)) {
    check_body(self.account_, *stream->request, {reinterpret_cast<const char*>(bytes), size});
  }
  return 0;
}
inline int ScriptedH2Client::on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
  auto& self = *static_cast<ScriptedH2Client*>(user);
  Stream* const stream = self.find(frame->hd.stream_id);
  if (stream == nullptr) return 0;
  if (frame->hd.type == NGHTTP2_HEADERS && stream->status != 0) {
    check_head(self.account_, *stream->request, std::exchange(stream->status, 0), stream->mark);
  }
  const bool carries = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
  if (carries && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) check_end(self.account_, *stream->request);
  return 0;
}
inline int ScriptedH2Client::on_close(nghttp2_session*, std::int32_t id, std::uint32_t error, void* user) {
  auto& self = *static_cast<ScriptedH2Client*>(user);
  Stream* const stream = self.find(id);
  if (stream == nullptr) return 0;
  const RequestRecord& one = *stream->request;
  self.account_.log("stream closed", error);
  if (error == 0 && one.ends == 0) self.account_.complain(one.token + ": a stream closed without an end");
  if (error != 0 && one.ends == 0) self.account_.check_cut(one);
  self.streams_.erase(id);
  return 0;
}

}  // namespace carpool::test
