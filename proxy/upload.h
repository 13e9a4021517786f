// Upload: the request's body on its way to the origin. Keeps the beginning of the body as long as a proven replay may
// need it (request.replay_buffer); frames it as the head announced.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "proxy/gather.h"
#include "proxy/http/message.h"
#include "proxy/outbox.h"

namespace carpool::proxy {

class Upload {
 public:
  void begin(http::Framing framing, std::uint64_t replay_limit);
  // Bytes of the body. With `to` they travel now, without they are held for the connection to come.
  void add(std::string_view bytes, Gather* to);
  void add_trailer(std::string_view name, std::string_view value) { trailers_.add(name, value); }
  void end(Gather* to);
  // A connection is there: everything held goes into `to`, behind the head.
  void start(Gather& to);
  // The connection is gone; the body must be whole to start again.
  void restart() { outbox.clear(); }
  void finish();  // gives memory back

  bool ended() const { return ended_; }
  bool whole() const { return whole_; }
  bool announced() const { return framing_ != http::Framing::none; }
  bool full() const { return held_.size() >= replay_limit_; }
  std::uint64_t received() const { return received_; }

  Outbox outbox;  // what the origin's socket would not take yet

 private:
  void frame(std::string_view bytes, Gather& to) const;
  void frame_end(Gather& to) const;
  http::Framing framing_ = http::Framing::none;
  std::uint64_t replay_limit_ = 0;
  std::uint64_t received_ = 0;
  std::string held_;  // all of the body so far, while whole_
  bool whole_ = true;
  bool ended_ = false;
  http::Fields trailers_;
};

}  // namespace carpool::proxy
