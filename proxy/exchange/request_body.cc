#include "proxy/exchange/request_body.h"

#include "proxy/exchange/body_rate.h"
#include "proxy/upstream/upstream_stream.h"

namespace carpool::proxy {

void RequestBody::begin(const http::RequestHead& head, std::uint64_t replay_limit, std::uint64_t max_body) {
  framing_ = head.framing;
  length_ = head.length;
  replay_limit_ = replay_limit;
  max_body_ = max_body;
  received_ = 0;
  held_.clear();
  trailers_.clear();
  whole_ = true;
  ended_ = false;
}

bool RequestBody::may_be_sent(Duration since, std::uint64_t min_rate) const {
  if (ended_ || full()) return true;
  return !fits() && since >= kStreams && BodyRate::is_met(min_rate, received_, since);
}

void RequestBody::add(std::string_view bytes, UpstreamStream* to) {
  received_ += bytes.size();
  if (over_limit()) return;
  if (to == nullptr) {
    held_.append(bytes);
    return;
  }
  if (whole_) {
    if (held_.size() + bytes.size() <= replay_limit_) {
      held_.append(bytes);
    } else {
      whole_ = false;
      std::string().swap(held_);
    }
  }
  to->send_body(bytes);
}

void RequestBody::end(UpstreamStream* to) {
  ended_ = true;
  if (to != nullptr) to->send_end(trailers_);
}

void RequestBody::start(UpstreamStream& to) {
  to.send_body(held_);
  if (held_.size() > replay_limit_) {
    // More bytes are held than may be replayed, so they are dropped once they are sent.
    to.flush();
    whole_ = false;
    std::string().swap(held_);
  }
  if (ended_) to.send_end(trailers_);
}

void RequestBody::finish() {
  held_.clear();
  http::shrink_text(held_);
  trailers_.clear();
  trailers_.shrink();
}

}  // namespace carpool::proxy
