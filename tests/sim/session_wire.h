// Wire: a connection in memory between a session and an origin: bytes in flight that a history delivers in pieces; and
// a second account of the windows, kept from the frames alone, that no sender may overdraw.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "proxy/net/transport.h"

namespace carpool::test {

using Random = std::mt19937_64;
inline std::uint32_t pick(Random& random, std::uint32_t n) {
  return n == 0 ? 0 : static_cast<std::uint32_t>(random() % n);
}
inline bool chance(Random& random, std::uint32_t percent) {
  return pick(random, 100) < percent;
}

struct WireFrame {
  unsigned type, flags;
  std::uint32_t stream;
  std::string_view payload;
  std::string_view whole;
};

inline std::uint32_t number_at(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

// Parses frames from bytes in any split.
class FrameReader {
 public:
  explicit FrameReader(std::size_t preface) : preface_(preface) {}
  template <class Visit>
  void pass(std::string_view bytes, const Visit& visit) {
    const std::size_t skipped = std::min(preface_, bytes.size());
    preface_ -= skipped;
    held_.append(bytes.substr(skipped));
    std::size_t at = 0;
    while (held_.size() - at >= kHead) {
      const std::string_view rest = std::string_view(held_).substr(at);
      const std::size_t size = kHead + number_at(rest, 0, 3);
      if (rest.size() < size) break;
      visit(WireFrame{number_at(rest, 3, 1), number_at(rest, 4, 1), number_at(rest, 5, 4) & 0x7fffffffU,
                      rest.substr(kHead, size - kHead), rest.substr(0, size)});
      at += size;
    }
    held_.erase(0, at);
  }

 private:
  static constexpr std::size_t kHead = 9;
  std::size_t preface_;
  std::string held_;
};

// The bytes one side may send (RFC 9113 §6.9), by the frames that arrived there. A SETTINGS that changes the windows
// counts from its acknowledgement, which the receiver sends before everything that obeys it.
class Allowance {
 public:
  void sent(const WireFrame& frame) {
    if (frame.type == 4 && (frame.flags & 1) != 0 && !settings_.empty()) {
      if (const std::int64_t to = std::exchange(settings_.front(), -1); to >= 0) change(to);
      settings_.pop_front();
    }
    if (frame.type != 0 || frame.payload.empty()) return;
    const auto size = static_cast<std::int64_t>(frame.payload.size());
    connection_ -= size;
    if (connection_ < 0 || (of(frame.stream) -= size) < 0) overdrawn_ = true;
  }
  void came(const WireFrame& frame) {
    if (frame.type == 8) (frame.stream == 0 ? connection_ : of(frame.stream)) += number_at(frame.payload, 0, 4);
    if (frame.type != 4 || (frame.flags & 1) != 0) return;
    std::int64_t window = -1;
    for (std::size_t at = 0; at + 6 <= frame.payload.size(); at += 6) {
      if (number_at(frame.payload, at, 2) == 4) window = number_at(frame.payload, at + 2, 4);
    }
    settings_.push_back(window);
  }
  bool overdrawn() const { return overdrawn_; }
  std::int64_t left() const { return connection_; }
  std::int64_t left(std::uint32_t stream) { return of(stream); }
  // Returns true if at least one byte may be sent on that stream now.
  bool open(std::uint32_t stream) { return connection_ > 0 && settings_.empty() && of(stream) > 0; }

 private:
  std::int64_t& of(std::uint32_t stream) { return streams_.try_emplace(stream, initial_).first->second; }
  void change(std::int64_t to) {
    for (auto& [id, window] : streams_) window += to - initial_;
    initial_ = to;
  }
  std::int64_t connection_ = 65535, initial_ = 65535;
  std::map<std::uint32_t, std::int64_t> streams_;
  std::deque<std::int64_t> settings_;  // not yet acknowledged; -1: leaves the windows unchanged
  bool overdrawn_ = false;
};

// One direction: sent and arrived.
struct Way {
  explicit Way(std::size_t preface) : at_start(preface), at_end(preface) {}
  std::string flying;
  FrameReader at_start, at_end;
  Allowance allowance;  // of the sender in this direction
};

struct Wire {
  explicit Wire(Random& random) : random_(random) {}

  void sent_up(std::string_view bytes) {
    up.flying.append(bytes);
    up.at_start.pass(bytes, [this](const WireFrame& frame) { up.allowance.sent(frame); });
  }
  void sent_down(std::string_view bytes) {
    down.flying.append(bytes);
    down.at_start.pass(bytes, [this](const WireFrame& frame) { down.allowance.sent(frame); });
  }
  // Delivers up to `most` bytes.
  std::string deliver_up(std::size_t most) {
    std::string bytes = take(up.flying, most);
    up.at_end.pass(bytes, [this](const WireFrame& frame) { down.allowance.came(frame); });
    return bytes;
  }
  bool deliver_down(std::size_t most) {
    const std::string bytes = take(down.flying, most);
    here.append(bytes);
    return !bytes.empty();
  }
  std::string read(std::size_t most) {
    std::string bytes = take(here, most);
    down.at_end.pass(bytes, [this](const WireFrame& frame) { up.allowance.came(frame); });
    return bytes;
  }
  bool overdrawn() const { return up.allowance.overdrawn() || down.allowance.overdrawn(); }

  Way up{24}, down{0};
  std::string here;  // bytes that our side may read
  std::size_t room = 64 * 1024;
  bool ended = false;   // the origin's FIN, after the bytes in flight
  bool broken = false;  // a reset: the bytes in flight are lost
  bool end_told = false;
  bool write_closed = false;  // our side cannot write, but what was sent to it can be read
  bool left = false;          // our side has closed
  bool full = false;          // our side could not write everything
  bool ready = true;          // an event for our side is pending

 private:
  friend class WireTransport;
  static std::string take(std::string& from, std::size_t most) {
    std::string bytes = from.substr(0, most);
    from.erase(0, bytes.size());
    return bytes;
  }
  Random& random_;
};

class WireTransport final : public proxy::net::Transport {
 public:
  explicit WireTransport(Wire& wire) : Transport(Fd()), wire_(wire) {}
  ~WireTransport() override { wire_.left = true; }
  WireTransport(const WireTransport&) = delete;
  WireTransport& operator=(const WireTransport&) = delete;

  proxy::net::IoResult read(std::span<char> into) override {
    if (wire_.broken) return {proxy::net::Io::failed, 0, ECONNRESET, "reset"};
    const std::size_t most = std::min<std::size_t>(into.size(), 1 + pick(wire_.random_, 20000));
    const std::string bytes = wire_.read(most);
    std::copy(bytes.begin(), bytes.end(), into.begin());
    if (!bytes.empty()) return result(proxy::net::Io::ok, bytes.size());
    readable_ = false;
    return result(wire_.ended && wire_.down.flying.empty() ? proxy::net::Io::eof : proxy::net::Io::would_block);
  }
  proxy::net::IoResult write(std::span<const iovec> from) override {
    if (wire_.broken || wire_.write_closed) return {proxy::net::Io::failed, 0, EPIPE, "broken"};
    std::size_t wanted = 0, taken = 0;
    for (const iovec& piece : from) wanted += piece.iov_len;
    std::size_t room = wire_.room - std::min(wire_.room, wire_.up.flying.size());
    for (const iovec& piece : from) {
      const std::size_t size = std::min(room, piece.iov_len);
      wire_.sent_up({static_cast<const char*>(piece.iov_base), size});
      taken += size;
      room -= size;
    }
    writable_ = taken == wanted;
    wire_.full = !writable_;
    return result(taken == 0 ? proxy::net::Io::would_block : proxy::net::Io::ok, taken);
  }
  void shut_write() override {}
  std::size_t unacknowledged() const override { return wire_.up.flying.size(); }
  bool no_data_pending() override { return wire_.here.empty(); }
  bool ended_in_order() override { return wire_.ended; }

 private:
  static proxy::net::IoResult result(proxy::net::Io io, std::size_t bytes = 0) {
    proxy::net::IoResult one;
    one.io = io;
    one.bytes = bytes;
    return one;
  }
  Wire& wire_;
};

}  // namespace carpool::test
