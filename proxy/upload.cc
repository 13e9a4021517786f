#include "proxy/upload.h"

#include "proxy/upstream/carrier.h"

namespace carpool::proxy {

void Upload::begin(http::Framing framing, std::uint64_t replay_limit) {
  framing_ = framing;
  replay_limit_ = replay_limit;
  received_ = 0;
  whole_ = true;
  ended_ = false;
}

void Upload::add(std::string_view bytes, Carrier* to) {
  received_ += bytes.size();
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

void Upload::end(Carrier* to) {
  ended_ = true;
  if (to != nullptr) to->send_end(trailers_);
}

void Upload::start(Carrier& to) {
  to.send_body(held_);
  if (held_.size() > replay_limit_) {
    // More was held than may be replayed: it is not kept.
    to.flush();
    whole_ = false;
    std::string().swap(held_);
  }
  if (ended_) to.send_end(trailers_);
}

void Upload::finish() {
  if (held_.capacity() > 4096) std::string().swap(held_);
  held_.clear();
  trailers_.clear();
}

}  // namespace carpool::proxy
