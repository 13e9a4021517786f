#include "proxy/downstream/buffered_request.h"

#include <utility>

namespace carpool::proxy {

BufferedRequest::ReadStatus BufferedRequest::read(net::Transport& transport, std::span<char> scratch) {
  if (std::exchange(after_head_, false) || !pending_.empty()) {
    const std::string bytes = std::exchange(pending_, {});
    return feed(bytes);
  }
  if (!transport.maybe_readable()) return ReadStatus::nothing;
  const net::IoResult io = transport.read(scratch);
  if (io.io == net::Io::ok) return feed({scratch.data(), io.bytes});
  return io.io == net::Io::would_block ? ReadStatus::nothing : ReadStatus::closed;
}

BufferedRequest::ReadStatus BufferedRequest::feed(std::string_view bytes) {
  for (;;) {
    Result<http::ParseResult> fed = reader_.feed(bytes, head_, sink_ != nullptr ? *sink_ : *this);
    if (!fed) {
      fault_ = fed.take_fault();
      return ReadStatus::malformed;
    }
    bytes.remove_prefix(fed->consumed);
    if (fed->progress == http::Progress::need_more) return ReadStatus::partial;
    expected_ = fed->progress == http::Progress::head && head_.expect_continue && sink_ == nullptr;
    after_head_ = sink_ != nullptr && fed->progress == http::Progress::head;
    if (!after_head_ && fed->progress != http::Progress::message) continue;
    pending_.assign(bytes);
    if (after_head_) return ReadStatus::head;
    reader_.reset();
    return ReadStatus::request;
  }
}

void BufferedRequest::on_body(std::string_view bytes) {
  too_long_ = too_long_ || body_.size() + bytes.size() > max_body_;
  if (!too_long_) body_.append(bytes);
}

// Frees the body, so that an idle connection holds no memory for one.
void BufferedRequest::done() {
  head_.clear();
  std::string().swap(body_);  // an assignment would keep the memory
  too_long_ = false;
}

}  // namespace carpool::proxy
