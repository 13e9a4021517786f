#include "proxy/net/write_queue.h"

#include <algorithm>
#include <climits>

#include "proxy/net/pipe.h"

namespace carpool::proxy {

namespace {
constexpr std::size_t kMaxPieces = 64;  // per call; well below IOV_MAX
static_assert(kMaxPieces <= IOV_MAX);
}  // namespace

WriteQueue::Sent WriteQueue::send(net::Transport& transport, WriteBatch& batch) {
  CARPOOL_ASSERT(!leased_);
  return empty() && batch.only_text() ? send_text(transport, batch) : send_pieces(transport, batch);
}

// Handles the common case: a head and its short body are one piece, and no data waits.
WriteQueue::Sent WriteQueue::send_text(net::Transport& transport, WriteBatch& batch) {
  std::string_view text = batch.text();
  Sent result = Sent::all;
  while (!text.empty()) {
    const iovec piece{const_cast<char*>(text.data()), text.size()};
    const net::IoResult io = transport.maybe_writable() ? transport.write({&piece, 1}) : net::IoResult{};
    if (io.io == net::Io::would_block) {
      waiting_ = std::make_unique<std::string>(text);
      result = Sent::part;
      break;
    }
    if (io.io != net::Io::ok) {
      set_failure(io.detail);
      result = Sent::failed;
      break;
    }
    written_ += io.bytes;
    text.remove_prefix(io.bytes);
  }
  batch.clear();
  return result;
}

WriteQueue::Sent WriteQueue::send_pieces(net::Transport& transport, WriteBatch& batch) {
  std::vector<iovec>& pieces =
      batch.vector_behind(empty() ? std::string_view() : std::string_view(*waiting_).substr(sent_));
  std::size_t done = 0;   // bytes written of all pieces
  std::size_t first = 0;  // first piece that is not fully written
  Sent result = Sent::all;
  while (first < pieces.size()) {
    const std::size_t count = std::min(pieces.size() - first, kMaxPieces);
    if (!transport.maybe_writable()) {
      result = Sent::part;
      break;
    }
    const net::IoResult io = transport.write({pieces.data() + first, count});
    if (io.io == net::Io::would_block) {
      result = Sent::part;
      break;
    }
    if (io.io != net::Io::ok) {
      set_failure(io.detail);
      batch.clear();
      return Sent::failed;
    }
    done += io.bytes;
    written_ += io.bytes;
    std::size_t left = io.bytes;
    while (first < pieces.size() && left >= pieces[first].iov_len) left -= pieces[first++].iov_len;
    if (left > 0) {
      pieces[first].iov_base = static_cast<char*>(pieces[first].iov_base) + left;
      pieces[first].iov_len -= left;
    }
  }
  if (result == Sent::all) {
    clear_waiting();
  } else {
    keep(pieces, first, done);
  }
  batch.clear();
  return result;
}

void WriteQueue::keep(const std::vector<iovec>& pieces, std::size_t first, std::size_t done) {
  const bool had_waiting = !empty();
  if (had_waiting) {
    const std::size_t gone = std::min(done, size());
    sent_ += gone;
    if (first == 0) ++first;    // waiting data stays in waiting_
    waiting_->erase(0, sent_);  // otherwise it grows with the transfer, because it is never quite empty
    sent_ = 0;
  }
  if (empty()) waiting_ = std::make_unique<std::string>();
  for (std::size_t i = first; i < pieces.size(); ++i) {
    waiting_->append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);
  }
}

WriteQueue::Sent WriteQueue::flush(net::Transport& transport) {
  while (!empty()) {
    if (!transport.maybe_writable()) return Sent::part;
    const iovec piece{waiting_->data() + sent_, size()};
    const net::IoResult io = transport.write({&piece, 1});
    if (io.io == net::Io::would_block) return Sent::part;
    if (io.io != net::Io::ok) {
      set_failure(io.detail);
      return Sent::failed;
    }
    written_ += io.bytes;
    sent_ += io.bytes;
  }
  clear_waiting();
  return Sent::all;
}

WriteQueue::Sent WriteQueue::splice(net::Transport& from, net::Transport& transport, net::Pipe& pipe, std::size_t most,
                                    net::IoResult& io) {
  CARPOOL_ASSERT(!leased_ && empty());
  io = from.splice_to(pipe, most);
  while (!pipe.empty() && transport.maybe_writable()) {
    const net::IoResult sent = transport.splice_from(pipe);
    if (sent.io != net::Io::ok) break;
    written_ += sent.bytes;
  }
  if (pipe.empty()) return Sent::all;
  waiting_ = std::make_unique<std::string>(pipe.take());
  return flush(transport);  // tells an error of the connection from a system that cannot splice
}

void WriteQueue::clear() {
  clear_waiting();
  written_ = 0;
  set_failure({});
}

}  // namespace carpool::proxy
