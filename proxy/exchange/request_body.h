// RequestBody: the request's body between client and origin. Keeps the beginning of the body as long as a safe retry
// may need it (request.replay_buffer).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "exec/role.h"
#include "proxy/http/message.h"

namespace carpool::proxy {

class UpstreamStream;

class RequestBody {
 public:
  // `max_body`: listen.max_body; 0 for no limit.
  void begin(const http::RequestHead& head, std::uint64_t replay_limit, std::uint64_t max_body = 0);
  // Returns true if the body may be sent. A body that fits into the buffer is collected first. A larger one waits until
  // the buffer is full, or until it has arrived at `min_rate` for kStreams, `since` its head.
  bool may_be_sent(Duration since, std::uint64_t min_rate) const;
  bool fits() const { return length_ <= replay_limit_; }
  static constexpr Duration kStreams = std::chrono::milliseconds(200);
  // Adds bytes of the body: sends them to `to`, or holds them if it is null because there is no connection. Drops bytes
  // over max_body.
  void add(std::string_view bytes, UpstreamStream* to) LOOP_ONLY;
  void add_trailer(std::string_view name, std::string_view value, bool sensitive) {
    trailers_.add(name, value, sensitive);
  }
  void end(UpstreamStream* to) LOOP_ONLY;
  // Sends everything held to a new connection, after the head. Called again after a failure while the body is held
  // completely.
  void start(UpstreamStream& to) LOOP_ONLY;
  void finish();  // releases the memory

  bool ended() const { return ended_; }
  bool over_limit() const { return max_body_ != 0 && received_ > max_body_; }
  bool replayable() const { return whole_; }
  bool expected() const { return framing_ != http::Framing::none; }
  bool full() const { return held_.size() >= replay_limit_; }
  std::uint64_t received() const { return received_; }

 private:
  http::Framing framing_ = http::Framing::none;
  std::uint64_t replay_limit_ = 0;
  std::uint64_t max_body_ = 0;
  std::uint64_t length_ = 0;
  std::uint64_t received_ = 0;
  std::string held_;  // all of the body so far, while whole_
  bool whole_ = true;
  bool ended_ = false;
  http::Fields trailers_;
};

}  // namespace carpool::proxy
