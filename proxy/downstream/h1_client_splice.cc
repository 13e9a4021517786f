// H1Client, splicing: moves the bytes of a response or of a tunnel from the origin's socket to the client's without
// copying them.
#include <algorithm>

#include "proxy/downstream/h1_client.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/net/pipe.h"
#include "proxy/upstream/loop_buffers.h"

namespace carpool::proxy {

// Bytes that wait, or that the next flush() sends, come first.
bool H1Client::splices_body() const {
  return transport_->splices() && transport_->maybe_writable() && out_.empty() && write_queue_.empty() &&
         context_.buffers.pipes().available();
}

bool H1Client::splice_body(net::Transport& from, std::size_t max_bytes, net::IoResult& io) {
  CARPOOL_ASSERT(reply_framing_ == http::Framing::length || reply_framing_ == http::Framing::none);  // none: a tunnel
  net::PipeLease pipe = context_.buffers.lease_pipe();
  if (!pipe) return true;  // available() is false now
  const WriteQueue::Sent sent =
      write_queue_.splice(from, *transport_, *pipe, std::min(max_bytes, net::Pipe::kCapacity), io);
  if (io.io == net::Io::failed && net::cannot_splice(io.error)) {
    io = {};
    context_.buffers.pipes().refuse();
  }
  return sent != WriteQueue::Sent::failed;
}

}  // namespace carpool::proxy
