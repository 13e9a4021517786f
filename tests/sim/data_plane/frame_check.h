// FrameCheck: reads the frames on one HTTP/2 connection of the proxy without the code of either end. The proxy's output
// must be in order on each stream and within the windows that the peer granted; the windows that it grants must not
// exceed what it can hold.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tests/sim/data_plane/account.h"
#include "tests/sim/data_plane/virtual_wire.h"
#include "tests/sim/session_wire.h"

namespace carpool::test {

// The maximum that the proxy lets a peer send on a stream and on the connection.
struct Windows {
  std::int64_t stream, connection;
};
inline constexpr Windows kOfClient{65535, 512 * 1024}, kOfOrigin{256 * 1024, 4096 * 1024};

class FrameCheck final : public WireObserver {
 public:
  enum class Peer : std::uint8_t { client, origin };
  FrameCheck(Account& account, VirtualWire& wire, Peer peer)
      : account_(account),
        wire_(wire),
        most_(peer == Peer::client ? kOfClient : kOfOrigin),
        of_client_(peer == Peer::client),
        in_(of_client_ ? kPreface : 0),
        out_(of_client_ ? 0 : kPreface) {
    wire.observer = this;
  }
  FrameCheck(const FrameCheck&) = delete;
  FrameCheck& operator=(const FrameCheck&) = delete;
  ~FrameCheck() { wire_.observer = nullptr; }

  // The proxy has read these bytes.
  void came(std::string_view bytes) override {
    if (unreliable()) return;
    in_.pass(bytes, [this](const WireFrame& frame) {
      mine_.came(frame);
      theirs_.sent(frame);
      if (frame.type == kHeaders) opened_ = std::max(opened_, frame.stream);
    });
  }
  void sent(std::string_view bytes) override {
    if (unreliable()) return;
    out_.pass(bytes, [this](const WireFrame& frame) {
      mine_.sent(frame);
      theirs_.came(frame);
      look_at(frame);
      if (mine_.overdrawn()) complain(frame, "exceeds a window of its receiver");
    });
  }

  // ---- of one stream ----
  std::uint64_t data_sent(std::uint32_t stream) const {
    const auto found = streams_.find(stream);
    return found == streams_.end() ? 0 : found->second.data;
  }
  std::uint64_t data_sent() const { return data_; }
  // Returns true if its receiver accepts at least one more byte.
  bool open(std::uint32_t stream) { return mine_.open(stream); }

 private:
  static constexpr unsigned kData = 0, kHeaders = 1, kReset = 3, kGoaway = 7, kWindowUpdate = 8, kContinuation = 9;
  static constexpr unsigned kEndStream = 1, kEndHeaders = 4;
  static constexpr std::size_t kPreface = 24, kMaxPayload = 16384;

  struct Stream {
    bool head = false, over = false;
    std::uint64_t data = 0;
  };

  bool unreliable() const { return wire_.noisy() || wire_.malformed_end; }
  void complain(const WireFrame& frame, const char* what) {
    const char* const to = of_client_ ? "a client's" : "an origin's";
    account_.complain("a frame of type " + std::to_string(frame.type) + " on stream " + std::to_string(frame.stream) +
                      " of " + to + " connection " + what);
  }
  void look_at(const WireFrame& frame) {
    if (frame.payload.size() > kMaxPayload) complain(frame, "is too long");
    if ((block_ != 0 || frame.type == kContinuation) && (frame.type != kContinuation || frame.stream != block_))
      complain(frame, "interrupts a header block, or continues none");
    switch (frame.type) {
      case kHeaders:
        if (!of_client_) see_request(frame);
        see_message(frame);
        [[fallthrough]];
      case kContinuation:
        block_ = (frame.flags & kEndHeaders) != 0 ? 0 : frame.stream;
        return;
      case kData:
        return see_message(frame);
      case kReset:
        streams_[frame.stream].over = true;
        return;
      case kWindowUpdate:
        return see_window(frame);
      case kGoaway:
        return see_goaway(frame);
      default:
        return;
    }
  }
  void see_request(const WireFrame& frame) {
    if (frame.stream % 2 == 0) complain(frame, "begins a request on a server's stream");
    if (!streams_.contains(frame.stream) && frame.stream < opened_) complain(frame, "opens an earlier stream");
    opened_ = std::max(opened_, frame.stream);
  }
  void see_message(const WireFrame& frame) {
    Stream& stream = streams_[frame.stream];
    if (frame.stream > opened_ || frame.stream == 0) complain(frame, "belongs to no request");
    if (stream.over) complain(frame, "follows its stream's end");
    if (frame.type == kData && !stream.head) complain(frame, "precedes its stream's head");
    stream.head = true;
    stream.over |= (frame.flags & kEndStream) != 0;
    if (frame.type != kData) return;
    stream.data += frame.payload.size();
    data_ += frame.payload.size();
  }
  void see_window(const WireFrame& frame) {
    if (number_at(frame.payload, 0, 4) == 0) complain(frame, "opens a window by nothing");
    const bool beyond = frame.stream == 0 ? theirs_.left() > most_.connection + kFrame
                                          : theirs_.left(frame.stream) > most_.stream + kFrame;
    if (beyond) complain(frame, "lets its sender send more than the proxy can hold");
  }
  void see_goaway(const WireFrame& frame) {
    const std::uint32_t last = number_at(frame.payload, 0, 4) & 0x7fffffffU, error = number_at(frame.payload, 4, 4);
    if (last > last_) complain(frame, "takes streams that an earlier one refused");
    if (error != 0 && error != kCalm) complain(frame, "blames a peer that did nothing wrong");
    last_ = last;
  }
  static constexpr std::uint32_t kCalm = 11;  // ENHANCE_YOUR_CALM
  // The proxy may return to a window what it has read of an incomplete frame.
  static constexpr std::int64_t kFrame = kMaxPayload;

  Account& account_;
  VirtualWire& wire_;
  const Windows most_;
  const bool of_client_;
  FrameReader in_, out_;
  Allowance mine_, theirs_;  // what the proxy may send, and what its peer may
  std::map<std::uint32_t, Stream> streams_;
  std::uint64_t data_ = 0;
  std::uint32_t opened_ = 0;  // the last stream
  std::uint32_t block_ = 0;   // the stream of an unfinished header block
  std::uint32_t last_ = 0x7fffffffU;
};

}  // namespace carpool::test
