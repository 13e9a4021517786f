// H2Guard: limits what a peer may do without useful work, with one token bucket for frames that carry no payload and
// one for resets. Time and useful work refill them, so that a busy connection is never classified as an attack
// (CVE-2019-9511 ff., CVE-2023-44487, CVE-2025-8671).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "proxy/http/h2/types.h"

namespace carpool::proxy::http {

class TokenBucket {
 public:
  TokenBucket(std::int32_t most, std::int32_t per_second) : most_(most), per_second_(per_second), tokens_(most) {}
  void credit(std::int32_t tokens) { tokens_ = std::min(most_, tokens_ + tokens); }
  // Returns false if there were fewer tokens.
  bool withdraw(std::int32_t tokens, Instant now) {
    refill(now);
    tokens_ -= tokens;
    return tokens_ >= 0;
  }

 private:
  void refill(Instant now) {
    if (last_ == Instant{}) last_ = now;
    const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(now - last_).count();
    const std::int64_t come = passed * per_second_ / 1000;
    if (come <= 0) return;
    last_ = now;
    credit(static_cast<std::int32_t>(std::min<std::int64_t>(come, most_)));
  }
  std::int32_t most_, per_second_, tokens_;
  Instant last_{};
};

class H2Guard {
 public:
  explicit H2Guard(const H2Options& options)
      : resets_(static_cast<std::int32_t>(std::clamp<std::uint32_t>(2 * options.max_streams, 200, 2000)), 50) {}

  // SETTINGS and GOAWAY cost most: the library visits every open stream for each of them.
  enum class Frame : std::uint8_t { settings, ping, priority, window_update, empty, goaway };
  bool frame(Frame frame, Instant now) {
    constexpr std::int32_t kCosts[] = {20, 4, 1, 1, 4, 20};
    return control_.withdraw(kCosts[static_cast<std::size_t>(frame)], now);
  }
  // A client that gives up after its own deadline is no attacker: its streams were open for long, so it resets no more
  // of them per second than it may have open.
  static constexpr Duration kLongOpen = std::chrono::seconds(1);
  bool reset_by_peer(Duration open, Instant now) { return open >= kLongOpen || resets_.withdraw(1, now); }
  // Counts a stream that this side resets because of an error of the peer. It costs more: no correct client causes it.
  bool reset_made(Instant now) { return resets_.withdraw(5, now); }
  // Counts a stream beyond H2Options::max_streams. A client may open many before it has received that limit.
  bool refused(Instant now) { return resets_.withdraw(1, now); }

  void note_request() { control_.credit(16); }
  void note_body() { control_.credit(4); }  // a frame with payload, in either direction
  // Also pays for its WINDOW_UPDATE frames, of the stream and of the connection: a peer that reads in small pieces may
  // send both for every 512 bytes.
  void note_body_sent(std::size_t bytes) { control_.credit(4 + static_cast<std::int32_t>(bytes / 256)); }
  void note_completed() { resets_.credit(1); }

 private:
  TokenBucket control_{4000, 400};
  TokenBucket resets_;
};

}  // namespace carpool::proxy::http
