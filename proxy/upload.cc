#include "proxy/upload.h"

#include "proxy/http/h1_codec.h"

namespace carpool::proxy {

void Upload::begin(http::Framing framing, std::uint64_t replay_limit) {
  framing_ = framing;
  replay_limit_ = replay_limit;
  received_ = 0;
  whole_ = true;
  ended_ = false;
}

void Upload::add(std::string_view bytes, Gather* to) {
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
  frame(bytes, *to);
}

void Upload::end(Gather* to) {
  ended_ = true;
  if (to != nullptr) frame_end(*to);
}

void Upload::start(Gather& to) {
  if (held_.size() <= replay_limit_) {
    frame(held_, to);
  } else {
    // More was held than may be replayed: it goes out as owned text and is not kept.
    const bool chunked = framing_ == http::Framing::chunked;
    if (chunked) http::write_chunk_head(to.text(), held_.size());
    to.text().append(held_);
    if (chunked) to.text().append("\r\n");
    whole_ = false;
    std::string().swap(held_);
  }
  if (ended_) frame_end(to);
}

void Upload::finish() {
  if (held_.capacity() > 4096) std::string().swap(held_);
  held_.clear();
  trailers_.clear();
  outbox.clear();
}

void Upload::frame(std::string_view bytes, Gather& to) const {
  if (bytes.empty()) return;
  if (framing_ != http::Framing::chunked) {
    to.add(bytes);
    return;
  }
  http::write_chunk_head(to.text(), bytes.size());
  to.add(bytes);
  to.text().append("\r\n");
}

void Upload::frame_end(Gather& to) const {
  if (framing_ == http::Framing::chunked) http::write_last_chunk(to.text(), trailers_);
}

}  // namespace carpool::proxy
