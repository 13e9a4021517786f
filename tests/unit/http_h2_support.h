// http_h2_support.h: two ends of HTTP/2 in memory: a recording owner for either side, and raw frames that no library
// would send.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/http/h2/session.h"

namespace carpool::proxy::http {

// The events that one stream's owner received.
class StreamRecord final : public H2StreamUser {
 public:
  void on_head(ResponseHead& head) override {
    if (head.status < 200) {
      interim.push_back(head.status);
    } else {
      std::swap(response, head);
    }
  }
  void on_body(std::string_view bytes) override { body.append(bytes); }
  void on_trailers(const Fields& fields) override { trailers = fields; }
  void on_end() override { ended = true; }
  void on_sent(std::size_t bytes) override { sent += bytes; }
  void on_closed(H2Error error) override {
    closed = true;
    reason = error;
    stream = nullptr;
  }
  H2Stream* stream = nullptr;
  RequestHead request;
  ResponseHead response;
  std::vector<int> interim;
  std::string body;
  Fields trailers;
  bool ended = false, closed = false;
  H2Error reason = H2Error::no_error;
  std::size_t sent = 0;
};

// One end of a connection.
class End : public H2Sink {
 public:
  virtual ~End() = default;
  explicit End(H2Role role, const H2Options& options = {}) : session(role, options, *this) {}

  H2StreamUser* on_request(H2Stream& stream, RequestHead& head) override {
    StreamRecord& record = streams[stream.id()];
    record.stream = &stream;
    std::swap(record.request, head);
    return &record;
  }
  void on_refused_head(H2Stream& stream, FaultKind kind) override {
    refused = kind;
    refused_grpc = stream.grpc_request();
    session.reset(stream, H2Error::cancel);
  }
  void on_stream_refused() override { ++refused_streams; }
  void on_settings(const H2PeerSettings& settings) override { peer = settings; }
  void on_settings_ack() override { ++settings_acks; }
  void on_goaway(StreamId last, H2Error error) override { goaway = {last, error}; }
  void on_ping_ack(std::uint64_t payload) override { pong = payload; }

  std::string pull(std::size_t most = 1 << 20) {
    std::string out;
    session.pull(out, most, now);
    return out;
  }
  bool receive(std::string_view bytes) { return static_cast<bool>(session.receive(bytes, now)); }

  Instant now{std::chrono::seconds(1000)};
  H2Session session;
  std::map<StreamId, StreamRecord> streams;
  FaultKind refused = FaultKind::internal;
  bool refused_grpc = false;
  unsigned refused_streams = 0;
  H2PeerSettings peer;
  std::pair<StreamId, H2Error> goaway{-1, H2Error::no_error};
  std::uint64_t pong = 0;
  int settings_acks = 0;
};

// Exchanges bytes until neither end has output.
inline void talk(End& a, End& b) {
  for (int round = 0; round < 1000; ++round) {
    const std::string there = a.pull();
    if (!there.empty()) b.receive(there);
    const std::string back = b.pull();
    if (!back.empty()) a.receive(back);
    if (there.empty() && back.empty()) return;
  }
}

// ---- raw frames ----

inline std::string frame(unsigned type, unsigned flags, unsigned stream, std::string_view payload) {
  std::string out;
  const auto byte = [&out](std::size_t value) { out.push_back(static_cast<char>(value & 0xff)); };
  byte(payload.size() >> 16);
  byte(payload.size() >> 8);
  byte(payload.size());
  byte(type);
  byte(flags);
  for (const int shift : {24, 16, 8, 0}) byte(stream >> shift);
  return out.append(payload);
}

inline std::string number(std::uint32_t value) {
  std::string out;
  for (const int shift : {24, 16, 8, 0}) out.push_back(static_cast<char>(value >> shift & 0xff));
  return out;
}

// HPACK literals without indexing and without Huffman coding.
inline std::string literal(std::string_view name, std::string_view value) {
  std::string out(1, '\0');
  for (const std::string_view text : {name, value}) {
    if (text.size() < 127) {
      out.push_back(static_cast<char>(text.size()));
    } else {
      out.push_back(0x7f);
      std::size_t rest = text.size() - 127;
      for (; rest >= 128; rest >>= 7) out.push_back(static_cast<char>(rest % 128 + 128));
      out.push_back(static_cast<char>(rest));
    }
    out.append(text);
  }
  return out;
}

using List_ = std::vector<std::pair<std::string_view, std::string_view>>;

inline std::string block(const List_& fields) {
  std::string out;
  for (const auto& [name, value] : fields) out += literal(name, value);
  return out;
}

inline constexpr unsigned kEndStream = 1, kEndHeaders = 4;

inline std::string headers(unsigned stream, const List_& fields, bool end = true) {
  return frame(1, kEndHeaders | (end ? kEndStream : 0), stream, block(fields));
}
inline std::string data(unsigned stream, std::string_view bytes, bool end = true) {
  return frame(0, end ? kEndStream : 0, stream, bytes);
}
inline std::string preface() {
  return std::string(kH2Preface) + frame(4, 0, 0, "");
}
inline List_ get(std::string_view path = "/") {
  return {{":method", "GET"}, {":scheme", "http"}, {":authority", "a.test"}, {":path", path}};
}

// The frames in `bytes`: type, flags, stream, payload.
struct Frame {
  unsigned type, flags, stream;
  std::string payload;
};
inline std::vector<Frame> frames(std::string_view bytes) {
  std::vector<Frame> all;
  while (bytes.size() >= 9) {
    const auto at = [&bytes](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(bytes[i])); };
    const std::size_t size = at(0) << 16 | at(1) << 8 | at(2);
    all.push_back({at(3), at(4), at(5) << 24 | at(6) << 16 | at(7) << 8 | at(8), std::string(bytes.substr(9, size))});
    bytes.remove_prefix(std::min(bytes.size(), 9 + size));
  }
  return all;
}
inline unsigned code(const Frame& frame, std::size_t at = 0) {
  unsigned value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(frame.payload.at(at + i));
  return value;
}
// The error of the first RST_STREAM of that stream, or -1; of the first GOAWAY with stream 0.
inline int error_of(std::string_view bytes, unsigned stream) {
  for (const Frame& f : frames(bytes)) {
    if (stream != 0 && f.type == 3 && f.stream == stream) return static_cast<int>(code(f));
    if (stream == 0 && f.type == 7) return static_cast<int>(code(f, 4));
  }
  return -1;
}

}  // namespace carpool::proxy::http
